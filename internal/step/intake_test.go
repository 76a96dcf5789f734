package step

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"bireme.dev/bireme/internal/wire"
)

// boundedLogStory: what a job writes without end fills the keeper's disk only up to its bound, and holds the job up
// never; a job cannot reserve the disk by the descriptor it has.
func boundedLogStory(t *testing.T, a *agent) {
	l := a.batch(1, "yes | head -c 3000000; echo end; exit 5")
	l.Stdio = wire.Stdio{Mode: wire.StdioLog, Bounds: wire.LogBounds{Most: 10_000}}
	a.launch(l)
	x, out := a.exited(l.Key)
	if x.ExitCode != 5 || len(out) > 10_200 || !strings.HasPrefix(out, strings.Repeat("y\n", 5000)) ||
		!strings.HasSuffix(out, "(limits.log_per_job); it runs on]\n") {
		t.Errorf("%+v: %d bytes: …%q", x, len(out), out[max(0, len(out)-200):])
	}
	l = a.batch(2, "fallocate -l 100000000 /proc/self/fd/1 || exit 7; truncate -s 1T /proc/self/fd/1; exit 8")
	l.Stdio = wire.Stdio{Mode: wire.StdioLog}
	a.launch(l)
	if x, out := a.exited(l.Key); x.ExitCode != 7 && x.ExitCode != 127 || x.LogSize > 1000 {
		t.Errorf("a job reserves the keeper's disk: %+v %q", x, out)
	}
	l = a.batch(3, "echo one; echo two")
	l.Stdio = wire.Stdio{Mode: wire.StdioLog, Bounds: wire.LogBounds{MinFree: 1 << 60}}
	a.launch(l)
	if x, out := a.exited(l.Key); x.ExitCode != 0 || strings.Contains(out, "one") ||
		!strings.Contains(out, "limits.min_free_disk") {
		t.Errorf("with a full disk: %+v %q", x, out)
	}
}

// freedLogStory: what the server has is given back to the disk while the job runs, and what comes after it is read from
// there on.
func freedLogStory(t *testing.T, a *agent) {
	const size = 5 << 20
	l := a.batch(1, "yes | head -c 5242880; while [ ! -e go ]; do sleep 0.01; done; echo end")
	l.Stdio = wire.Stdio{Mode: wire.StdioLog}
	a.launch(l)
	a.started(l.Key)
	a.until("all is written", func() bool {
		r, _ := a.readLog(wire.ReadLog{Key: l.Key, Offset: size, Wait: time.Millisecond})
		return r.Size == size
	})
	var st unix.Stat_t
	path := filepath.Join(a.state(), "logs", l.Key.String())
	if err := unix.Stat(path, &st); err != nil {
		t.Fatal(err)
	}
	before := st.Blocks
	if r, b := a.readLog(wire.ReadLog{Key: l.Key, Offset: 10, Free: size - 2, Max: 4}); r.Offset != 4<<20 ||
		b != "y\ny\n" {
		t.Errorf("%+v %q", r, b)
	}
	if err := unix.Stat(path, &st); err != nil || st.Blocks*512 > 1<<20+64<<10 || st.Size != size {
		t.Errorf("%d blocks before, %d after, %v", before, st.Blocks, err)
	}
	a.readLog(wire.ReadLog{Key: l.Key, Offset: wire.LogFull, Free: wire.LogFull}) // nobody wants more
	if err := os.WriteFile(filepath.Join(a.dir, "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if x, _ := a.exited(l.Key); x.ExitCode != 0 || x.LogSize != size {
		t.Errorf("%+v", x)
	}
}

// upgradedLogStory: a streamed log continues over an upgrade, with nothing lost or twice.
func upgradedLogStory(t *testing.T, a *agent) {
	// It does not end before the upgrade, however fast it is: the exit would be news to the old connection.
	l := a.batch(1, "i=0; while [ $i -lt 30000 ]; do [ $i -ne 29000 ] || read x <fifo; echo $i; i=$((i+1)); done")
	l.Stdio = wire.Stdio{Mode: wire.StdioLog}
	if err := unix.Mkfifo(filepath.Join(a.dir, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	goOn, err := os.OpenFile(filepath.Join(a.dir, "fifo"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer goOn.Close()
	a.launch(l)
	a.started(l.Key)
	a.until("it writes", func() bool {
		r, _ := a.readLog(wire.ReadLog{Key: l.Key, Wait: time.Millisecond})
		return r.Size > 1000
	})
	if r := a.ask(wire.TypeUpgrade, wire.Upgrade{Ref: 1, Path: a.dir}, 1); r.Code == "" { // a directory cannot be executed
		t.Errorf("%+v", r)
	}
	a.send(wire.TypeUpgrade, wire.Upgrade{})
	for {
		if _, err := a.conn.Next(); err != nil {
			break // the old program is gone
		}
	}
	a.connect()
	if _, err := goOn.WriteString("\n"); err != nil {
		t.Fatal(err)
	}
	x, out := a.exited(l.Key)
	lines := strings.Fields(out)
	if x.ExitCode != 0 || len(lines) != 30000 || lines[29999] != "29999" || !strings.HasPrefix(out, "0\n1\n2\n") {
		t.Errorf("%+v: %d lines", x, len(lines))
	}
}
