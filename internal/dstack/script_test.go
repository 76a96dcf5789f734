package dstack

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestScriptsRun gives the made scripts to a real shell: what counts is what they do.
func TestScriptsRun(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	if err := os.Mkdir(filepath.Join(home, "a b"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		yaml string
		out  string
		code int
	}{
		"in turn":            {"commands: [echo one, echo two]", "one\ntwo\n", 0},
		"stops at a failure": {"commands: [echo one, exit 3, echo never]", "one\n", 3},
		"false stops too":    {"commands: ['false', echo never]", "", 1},
		"one shell":          {"commands: [X=5, export Y=6, cd /, 'echo $X $(sh -c \"echo \\$Y\") $PWD']", "5 6 /\n", 0},
		"comment":            {"commands: ['echo one # and', '# nothing', echo two]", "one\ntwo\n", 0},
		"background":         {"commands: ['echo one &', wait, echo two]", "one\ntwo\n", 0},
		"here-document":      {"commands:\n  - |\n    cat <<EOF\n    in $((1+1))\n    EOF\n  - echo out", "in 2\nout\n", 0},
		"block":              {"commands:\n  - |\n    if true; then\n      echo yes\n    fi\n  - echo end", "yes\nend\n", 0},
		"dollars":            {"commands: ['echo $$HOME']", home + "\n", 0},
		"home":               {"commands: ['echo $PWD']", home + "\n", 0},
		"below home":         {"working_dir: ~/a b\ncommands: ['echo $DSTACK_WORKING_DIR']", home + "/a b\n", 0},
		"dir missing":        {"working_dir: /no/such/dir\ncommands: [echo never]", "", -1},
	} {
		for _, shell := range []string{"sh", "bash"} {
			t.Run(name+"/"+shell, func(t *testing.T) {
				t.Parallel()
				if _, err := exec.LookPath(shell); err != nil {
					t.Skip(shell + " is not installed")
				}
				task, err := Parse("t.yml", []byte("type: task\nshell: "+shell+"\n"+tc.yaml+"\n"))
				if err != nil {
					t.Fatal(err)
				}
				sub, err := task.Submit(Options{Name: "test", Lookup: caller})
				if err != nil {
					t.Fatal(err)
				}
				cmd := exec.CommandContext(t.Context(), shell, "-s")
				cmd.Stdin = strings.NewReader(sub.Script)
				cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}
				var out bytes.Buffer
				cmd.Stdout = &out
				code := 0
				var exit *exec.ExitError
				if err := cmd.Run(); errors.As(err, &exit) {
					code = exit.ExitCode()
				} else if err != nil {
					t.Fatal(err)
				}
				if out.String() != tc.out || code != tc.code && !(tc.code < 0 && code > 0) {
					t.Errorf("exit status %d, output %q; want %d, %q\n%s", code, out.String(), tc.code, tc.out, sub.Script)
				}
			})
		}
	}
}
