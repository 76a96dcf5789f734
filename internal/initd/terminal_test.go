package initd

import (
	"bufio"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"bireme.dev/bireme/internal/wire"
)

// TestTerminal: commands find a terminal, an interactive shell if it is bash, and lines that end as they wrote them;
// nothing of their output is lost, and what joins has their variables.
func TestTerminal(t *testing.T) {
	t.Parallel()
	in := start(t, "KIND=image")
	out := in.run(wire.Run{Terminal: true},
		"#!/bin/bash\ncase $- in *i*) echo interactive;; esac; test -t 0 && test -t 2 && echo terminal; i=0; "+
			"while [ $i -lt 3000 ]; do echo line $i; i=$((i+1)); done; (exit 5)", "COLOR=teal")
	e := in.ended()
	got := text(t, out)
	lines := strings.Split(strings.TrimSuffix(got, "\n"), "\n")
	if e.ExitCode != 5 || len(lines) != 3002 || lines[0] != "interactive" || lines[1] != "terminal" ||
		lines[3001] != "line 2999" || strings.Contains(got, "\r") {
		t.Errorf("%+v with %d lines, %q", e, len(lines), got[:min(len(got), 80)])
	}
}

// TestLongScriptOnATerminal: commands that are too long for one argument of a program run as others do.
func TestLongScriptOnATerminal(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"/bin/sh", "/bin/bash"} {
		for _, size := range []int{maxArgument - 100, maxArgument + 1, 3 * maxArgument} {
			in := start(t)
			script := "#!" + shell + "\ntest -t 0 && echo terminal && { :\n" + strings.Repeat("# filled\n", size/9) +
				"}\necho end; (exit 7)\n"
			out := in.run(wire.Run{Terminal: true}, script)
			if e, got := in.ended(), text(t, out); e.ExitCode != 7 || got != "terminal\nend\n" {
				t.Errorf("%s, %d bytes: %+v, %.200q", shell, len(script), e, got)
			}
		}
	}
}

// TestInterrupt: a stop is Ctrl+C, which what runs in the foreground hears; what joins has the job's variables.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	in := start(t)
	out := in.run(wire.Run{Terminal: true},
		"#!/bin/sh\nsh -c 'trap \"echo told; exit 3\" INT; echo ready; while :; do sleep 0.01; done'", "COLOR=teal")
	r := bufio.NewReader(out)
	if line, err := r.ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("%q, %v", line, err)
	}
	joined := in.run(wire.Run{ID: 1, Argv: []string{"sh", "-c", "echo $COLOR"}}, "")
	if e := in.ended(); e.ID != 1 || text(t, joined) != "teal\n" {
		t.Errorf("what joined ended as %+v", e)
	}
	if err := in.conn.Send(wire.TypeRunSignal, wire.RunSignal{Number: int(unix.SIGTERM)}, nil); err != nil {
		t.Fatal(err)
	}
	if e := in.ended(); e.ID != 0 || e.ExitCode == 0 && e.Signal == 0 {
		t.Errorf("it ended as %+v", e)
	}
	if got := text(t, r); !strings.Contains(got, "told\n") {
		t.Errorf("output %q", got)
	}
}
