package initd

import (
	"context"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"bireme.dev/bireme/internal/wire"
)

// TestMain lets the test program stand for bireme-init: Serve takes over all children of its process.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "serve" {
		code, _ := Serve(os.Args[2])
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// inside is a bireme-init under test, seen from its stand-in.
type inside struct {
	t    *testing.T
	cmd  *exec.Cmd
	conn *wire.PassConn
}

func start(t *testing.T, env ...string) *inside {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	cmd := exec.CommandContext(ctx, os.Args[0], "serve", socket)
	cmd.Env = append(env, "PATH="+os.Getenv("PATH"))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c, err := l.AcceptUnix()
	if err != nil {
		t.Fatal(err)
	}
	in := &inside{t: t, cmd: cmd, conn: wire.NewPassConn(c)}
	t.Cleanup(func() { in.conn.Close(); _ = cmd.Wait(); cancel() })
	return in
}

// run starts a program whose output comes by the reader.
func (in *inside) run(r wire.Run, script string, env ...string) io.Reader {
	in.t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		in.t.Fatal(err)
	}
	defer write.Close()
	in.t.Cleanup(func() { read.Close() })
	null, err := os.Open(os.DevNull)
	if err != nil {
		in.t.Fatal(err)
	}
	defer null.Close()
	r.ScriptLen = len(script)
	if err := in.conn.Send(wire.TypeRun, r, []*os.File{null, write, write}, []byte(script),
		wire.JoinEnv(env)); err != nil {
		in.t.Fatal(err)
	}
	return read
}

func (in *inside) ended() wire.RunEnded {
	in.t.Helper()
	for {
		f, err := in.conn.Next()
		if err != nil {
			in.t.Fatal(err)
		}
		if f.Type == wire.TypeRunEnded {
			var e wire.RunEnded
			if err := f.Decode(&e); err != nil {
				in.t.Fatal(err)
			}
			return e
		}
	}
}

func text(t *testing.T, r io.Reader) string {
	t.Helper()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestProgramsEndAsTheyDo(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		run          wire.Run
		script       string
		out          string
		code, signal int
		cause        wire.Cause
		message      string
		status       int // of bireme-init
	}{
		"script": {
			run: wire.Run{Argv: []string{"a b"}}, script: "#!/bin/sh -e\necho \"$1\"\nexit 7\n",
			out: "a b\n", code: 7, status: 7,
		},
		"program": {run: wire.Run{Argv: []string{"echo", "x"}}, out: "x\n"},
		"signal":  {script: "#!/bin/sh\nkill -9 $$\n", signal: 9, status: 137},
		"not found": {
			run: wire.Run{Argv: []string{"no-such-program"}}, code: 127, cause: wire.CauseExecFailed,
			message: "no such program", status: 127,
		},
		"no shell": {
			script: "#!/no/shell\n", code: 127, cause: wire.CauseExecFailed,
			message: "the image has no /no/shell", status: 127,
		},
		"not executable": {
			run: wire.Run{Argv: []string{"/etc/passwd"}}, code: 126, cause: wire.CauseExecFailed,
			message: "permission denied", status: 126,
		},
		"no folder": {
			run: wire.Run{Argv: []string{"true"}, WorkDir: "/no/dir"}, signal: 53,
			cause: wire.CauseLaunchFailed, message: "working directory /no/dir", status: 128 + 53,
		},
		"no user": {
			run: wire.Run{Argv: []string{"true"}, User: "no-such-user"}, signal: 53,
			cause: wire.CauseLaunchFailed, message: "knows no such user", status: 128 + 53,
		},
		"nothing": {signal: 53, cause: wire.CauseLaunchFailed, message: "nothing to run", status: 128 + 53},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := start(t)
			out := in.run(tc.run, tc.script)
			e := in.ended()
			if got := text(t, out); got != tc.out {
				t.Errorf("output %q, want %q", got, tc.out)
			}
			if e.ExitCode != tc.code || e.Signal != tc.signal || e.Cause != tc.cause ||
				!strings.Contains(e.Message, tc.message) {
				t.Errorf("it ended as %+v", e)
			}
			_ = in.cmd.Wait() // its status is what counts
			if got := in.cmd.ProcessState.ExitCode(); got != tc.status {
				t.Errorf("bireme-init ended with %d, want %d", got, tc.status)
			}
		})
	}
}

func TestWhoseVariablesWin(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		imageWins bool
		want      string
	}{"the job's": {false, "job job image"}, "the image's": {true, "image job image"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := start(t, "A=image", "C=image")
			out := in.run(wire.Run{ImageEnv: tc.imageWins}, "#!/bin/sh\necho $A $B $C\n", "A=job", "B=job")
			in.ended()
			if got := text(t, out); got != tc.want+"\n" {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// TestJoined: a program that joins ends without ending the container, and ends with it.
func TestJoined(t *testing.T) {
	t.Parallel()
	in := start(t)
	first := in.run(wire.Run{}, "#!/bin/sh\ntrap 'echo told; exit 3' USR1\necho ready\nwhile :; do sleep 0.01; done\n")
	line := make([]byte, 6)
	if _, err := io.ReadFull(first, line); err != nil || string(line) != "ready\n" {
		t.Fatalf("%q, %v", line, err)
	}
	joined := in.run(wire.Run{ID: 1, Argv: []string{"sh", "-c", "echo in; exit 4"}}, "")
	if e := in.ended(); e.ID != 1 || e.ExitCode != 4 || text(t, joined) != "in\n" {
		t.Errorf("what joined ended as %+v", e)
	}
	stays := in.run(wire.Run{ID: 2, Argv: []string{"sleep", "100"}}, "")
	if err := in.conn.Send(wire.TypeRunSignal, wire.RunSignal{Number: int(unix.SIGUSR1)}, nil); err != nil {
		t.Fatal(err)
	}
	if e := in.ended(); e.ID != 0 || e.ExitCode != 3 {
		t.Errorf("the first program ended as %+v", e)
	}
	if got := text(t, stays) + text(t, first); !strings.Contains(got, "told\n") {
		t.Errorf("output %q", got)
	}
}

// TestNobodyWatches: when the stand-in is gone, everything ends.
func TestNobodyWatches(t *testing.T) {
	t.Parallel()
	in := start(t)
	out := in.run(wire.Run{}, "#!/bin/sh\nsleep 100\n")
	in.conn.Close()
	if got := text(t, out); got != "" { // at its end nobody holds the pipe
		t.Errorf("output %q", got)
	}
	_ = in.cmd.Wait()
	if got := in.cmd.ProcessState.ExitCode(); got != exitKilled {
		t.Errorf("bireme-init ended with %d, want %d", got, exitKilled)
	}
}
