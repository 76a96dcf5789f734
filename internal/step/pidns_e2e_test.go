//go:build e2e

package step

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"bireme.dev/bireme/internal/wire"
)

// TestInNamespaces has no cgroups, but root: PID namespaces hold the processes.
func TestInNamespaces(t *testing.T) {
	needRoot(t)
	t.Parallel()
	stories(t, "hidden")
	for name, story := range map[string]func(*testing.T, *agent){
		"nobody escapes":  escapeStory,
		"as another user": userStory,
		"signals":         namespaceSignals,
		"login cancelled": loginCancelled,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := startKeeper(t, "hidden")
			if c := a.hello.Containment; c != wire.PIDNS {
				t.Fatalf("containment %s", c)
			}
			story(t, a)
		})
	}
}

// escapeStory leaves processes that shed everything the weak level knows them by: parent, session and environment.
func escapeStory(t *testing.T, a *agent) {
	l := a.batch(1, `env -i setsid sh -c 'env -i setsid sh -c "trap \"\" TERM HUP; touch here; exec sleep 4321.5" &' `+
		`; while [ ! -e here ]; do sleep 0.01; done`)
	x, _ := a.run(l)
	if x.Cause != "" || x.ExitCode != 0 || !x.JobDone {
		t.Errorf("%+v", x)
	}
	a.until("nothing sleeps", func() bool { return len(withArgument(t, "4321.5")) == 0 })
	// The same when the keeper dies, and another cleans up.
	l = a.batch(2, `env -i setsid sh -c 'env -i setsid sh -c "exec sleep 4321.6" &' ; sleep 1000`)
	a.launch(l)
	a.started(l.Key)
	a.until("it sleeps", func() bool { return len(withArgument(t, "4321.6")) == 1 })
	a.kill()
	a.start()
	a.until("nothing sleeps", func() bool { return len(withArgument(t, "4321.6")) == 0 })
}

// withArgument lists the living processes that have a word as their last argument.
func withArgument(t *testing.T, word string) []int {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var list []int
	for _, f := range files {
		if b, err := os.ReadFile(f); err == nil && strings.HasSuffix(string(b), "\x00"+word+"\x00") {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(f)))
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, pid)
		}
	}
	return list
}

// namespaceSignals: a script has what signals do by default, ends with its own code, and leaves no zombies.
func namespaceSignals(t *testing.T, a *agent) {
	l := a.batch(1, "touch ready; exec sleep 1000")
	l.Time.KillGrace = time.Minute
	a.launch(l)
	a.started(l.Key)
	since := time.Now()
	a.ask(wire.TypeKill, wire.Kill{Ref: 1, Job: 1}, 1)
	if x, _ := a.exited(l.Key); x.Signal != int(syscall.SIGTERM) || x.Cause != wire.CauseCancelled ||
		time.Since(since) > 30*time.Second {
		t.Errorf("cancelled: %+v after %s", x, time.Since(since))
	}
	// Two hundred orphans, more than may be there at once.
	l = a.batch(2, "i=0; while [ $i -lt 200 ]; do (sleep 0 &); i=$((i+1)); done; while ps -o stat= --ppid 1 "+
		"2>/dev/null | grep -q Z; do sleep 0.01; done; exit 7")
	if x, _ := a.run(l); x.ExitCode != 7 || x.Signal != 0 {
		t.Errorf("%+v", x)
	}
}

// loginCancelled ends a step whose login shell is still at work.
func loginCancelled(t *testing.T, a *agent) {
	l := a.batch(1, "true")
	l.Identity.Shell, l.Program.LoginEnv = "/bin/sh", true
	l.Identity.Home = a.dir
	if err := os.WriteFile(filepath.Join(a.dir, ".profile"), []byte("touch "+a.dir+"/profile; sleep 1000\n"),
		0o644); err != nil {
		t.Fatal(err)
	}
	a.launch(l)
	a.until("the profile runs", func() bool {
		_, err := os.Stat(filepath.Join(a.dir, "profile"))
		return err == nil
	})
	a.ask(wire.TypeKill, wire.Kill{Ref: 1, Job: 1}, 1)
	if x, _ := a.exited(l.Key); x.Cause != wire.CauseCancelled || x.Started {
		t.Errorf("%+v", x)
	}
}
