package step

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"bireme.dev/bireme/internal/wire"
)

// Programs around each task: what the first write acts on the task, the others run before its end is told.
func taskHookStory(t *testing.T, a *agent) {
	script := func(name, text string) string {
		path := filepath.Join(a.dir, name)
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	site := script("site", `echo export RANKED=rank $RANK in $SLURM_SCRIPT_CONTEXT
echo "unset GONE"
echo "print hello from $RANK"
echo neither of these`)
	user := script("user", `echo "export SEEN=$RANKED, ${GONE-nothing}"`)
	after := script("after", "echo $SLURM_SCRIPT_CONTEXT $RANK >>ended.$RANK")
	l := a.batch(1, "")
	l.Key.Step, l.Script = "0", nil
	l.Env = append(l.Env, "GONE=here\x00"...)
	l.Program.Argv = []string{"sh", "-c", "echo $SEEN"}
	l.Program.TaskProlog, l.Program.TaskEpilog = []string{site, user}, []string{after}
	l.Stdio.Stdout = "task.%t"
	for i := range 2 {
		l.Program.Tasks = append(l.Program.Tasks, wire.Task{Rank: i, Env: []string{fmt.Sprint("RANK=", i)}})
	}
	if x, _ := a.run(l); x.ExitCode != 0 {
		t.Errorf("%+v", x)
	}
	for i := range 2 {
		want := fmt.Sprintf("hello from %d\nrank %[1]d in prolog_task, nothing\n", i)
		if got := a.read(fmt.Sprint("task.", i)); got != want {
			t.Errorf("task %d wrote %q, not %q", i, got, want)
		}
		if got := a.read(fmt.Sprint("ended.", i)); got != fmt.Sprintf("epilog_task %d\n", i) {
			t.Errorf("epilog of task %d wrote %q", i, got)
		}
	}

	// One that fails keeps the task from running.
	l = a.batch(2, "echo ran")
	l.Program.TaskProlog = []string{script("bad", "echo no licence; exit 7")}
	l.Stdio.Stdout, l.Stdio.NoticePrefix = "bad.out", "slurmstepd: error: "
	if x, _ := a.run(l); x.ExitCode != 7 || x.Cause != wire.CauseExecFailed {
		t.Errorf("%+v", x)
	}
	if got, want := a.read("bad.out"), "slurmstepd: error: TaskProlog failed: "+filepath.Join(a.dir, "bad")+
		": exit code 7: no licence\n"; got != want {
		t.Errorf("wrote %q, not %q", got, want)
	}
}
