package audit

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"bireme.dev/bireme/internal/core"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// memory is a store that fails while told to.
type memory struct {
	mu   sync.Mutex
	rows []core.AuditEntry
	err  error
}

func (m *memory) append(_ context.Context, list []*core.AuditEntry) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		return m.err
	}
	for _, e := range list {
		e.Seq = int64(len(m.rows)) + 1
		m.rows = append(m.rows, *e)
	}
	return nil
}

func (m *memory) fail(err error) { m.mu.Lock(); m.err = err; m.mu.Unlock() }

func (m *memory) all() []core.AuditEntry {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]core.AuditEntry{}, m.rows...)
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func newLog(t *testing.T, m *memory, export string) *Log {
	t.Helper()
	l, err := New(Config{Append: m.append, Export: export, Log: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func entry(user, action, object, answer string) *core.AuditEntry {
	return &core.AuditEntry{User: core.UserName(user), Action: action, Object: object, Answer: answer, Count: 1}
}

// A million refusals of one user, all different, are a few rows, and nobody's act is lost behind them.
func TestAFloodIsAFewRows(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &memory{}
		l := newLog(t, m, "")
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- l.Run(ctx) }()
		const calls = 100_000
		for i := range calls {
			l.Note(entry("mallory", "job.cancel", fmt.Sprint("job ", i), "denied"))
		}
		for range 5000 {
			l.Note(entry("eve", "job.script", "job 1", "denied"))
		}
		if err := l.Write(t.Context(), entry("root", "user.update", "user eve", "ok")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(windowLen + time.Second) // of the test's own clock
		cancel()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		rows, counted := m.all(), map[core.UserName]int64{}
		for i, e := range rows {
			counted[e.User] += e.Count
			if e.Seq != int64(i)+1 || e.At == 0 {
				t.Errorf("row %d: %+v", i, e)
			}
		}
		if len(rows) > 2*perCaller+5 {
			t.Errorf("%d rows", len(rows))
		}
		if counted["mallory"] != calls || counted["eve"] != 5000 || counted["root"] != 1 || l.Stats().Dropped.Load() != 0 {
			t.Errorf("not all is counted: %v, %d dropped", counted, l.Stats().Dropped.Load())
		}
	})
}

// Callers without number (addresses are cheap) fill neither memory nor the log.
func TestManyCallersAreBounded(t *testing.T) {
	t.Parallel()
	var l limiter
	n := 0
	for i := range 50_000 {
		if l.admit(&core.AuditEntry{
			Addr: fmt.Sprint("10.0.", i), Action: "sign-in", Answer: "unknown_user",
			Count: 1,
		}) != nil {
			n++
		}
	}
	sum := int64(n)
	rest := l.closeWindow()
	for _, e := range rest {
		sum += e.Count
	}
	if n > perWindow || len(rest) > maxCallers+1 || sum != 50_000 {
		t.Errorf("%d rows at once, %d at the end, %d calls told", n, len(rest), sum)
	}
	if again := l.closeWindow(); len(again) != 0 {
		t.Errorf("an empty window tells %d", len(again))
	}
}

// An entry that somebody waits for is on disk when they continue, or they are told; a store that comes back gets it.
func TestWriteWaitsForTheStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &memory{}
		l := newLog(t, m, "")
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- l.Run(ctx) }()
		m.fail(errors.New("disk full"))
		if err := l.Write(t.Context(), entry("root", "node.update", "node n1", "ok")); err == nil {
			t.Error("an entry that is not on disk is confirmed")
		}
		for range 3 * queueLen { // while nothing can be written the queue is bounded, and what is lost is counted
			l.put(entry("x", "sign-in", "", "ok"))
		}
		if l.Stats().Dropped.Load() == 0 {
			t.Error("the queue has no end")
		}
		m.fail(nil)
		if err := l.Write(t.Context(), entry("root", "node.update", "node n2", "ok")); err != nil {
			t.Error(err)
		}
		cancel()
		<-done
		rows := m.all()
		if rows[0].Object != "node n1" || rows[len(rows)-1].Object != "node n2" {
			t.Errorf("%d rows from %+v to %+v", len(rows), rows[0], rows[len(rows)-1])
		}
	})
}

func TestSignInsAreToldOnce(t *testing.T) {
	t.Parallel()
	var s SignIns
	now := time.Unix(1_800_000_000, 0)
	ann := SignIn{User: "ann", Addr: "local"}
	if !s.First(ann, now) || s.First(ann, now.Add(time.Hour)) || !s.First(SignIn{User: "ann", Addr: "10.0.0.1"}, now) {
		t.Error("a caller is told once for each address")
	}
	if !s.First(ann, now.Add(signWindow)) {
		t.Error("after days the caller is told again")
	}
	for i := range 3 * maxSigned {
		s.First(SignIn{User: core.UserName(fmt.Sprint(i))}, now.Add(signWindow))
	}
	if len(s.seen) > maxSigned {
		t.Errorf("%d callers are remembered", len(s.seen))
	}
}

// run starts a log that exports, writes entries and stops it.
func export(t *testing.T, setting string, list ...*core.AuditEntry) *Log {
	t.Helper()
	m := &memory{}
	l := newLog(t, m, setting)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- l.Run(ctx) }()
	for _, e := range list {
		if err := l.Write(t.Context(), e); err != nil {
			t.Error(err)
		}
	}
	cancel()
	<-done
	return l
}

func TestExportToAFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.log")
	export(t, "file:"+path, entry("root", "node.update", "node n1\n{\"seq\":9}", "ok"))
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	export(t, "file:"+path, entry("root", "node.update", "node n2", "ok"), entry("mallory", "job.env", "job 1", "denied"))
	for name, want := range map[string]int{path + ".1": 1, path: 2} {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
		if len(lines) != want {
			t.Errorf("%s has %d lines, want %d: %q", name, len(lines), want, data)
		}
		for _, line := range lines {
			var e core.AuditEntry
			if err := json.Unmarshal([]byte(line), &e); err != nil || e.Seq == 0 || e.At == 0 {
				t.Errorf("%q: %v", line, err)
			}
		}
		if st, err := os.Stat(name); err != nil || st.Mode().Perm() != 0o600 {
			t.Errorf("%s may be read by others: %v %v", name, st.Mode(), err)
		}
	}
}

var rfc5424 = regexp.MustCompile(`^<(\d+)>1 \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z \S+ biremed \d+ audit - (\{.*\})$`)

func TestExportToSyslog(t *testing.T) {
	t.Parallel()
	list := func() []*core.AuditEntry {
		return []*core.AuditEntry{
			entry("root", "node.update", "node n1\n<34>1 forged", "ok"),
			entry("mallory", "job.env", "job 1", "denied"),
		}
	}
	check := func(t *testing.T, i int, msg string) {
		t.Helper()
		m := rfc5424.FindStringSubmatch(msg)
		if want := []string{"85", "84"}[i]; m == nil || m[1] != want || strings.ContainsAny(msg, "\n\r") {
			t.Errorf("message %d: %q", i, msg)
		}
	}
	t.Run("datagrams", func(t *testing.T) {
		t.Parallel()
		path := filepath.Join(t.TempDir(), "log")
		c, err := net.ListenPacket("unixgram", path)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		export(t, "syslog:"+path, list()...)
		buf := make([]byte, 4096)
		for i := range 2 {
			n, _, err := c.ReadFrom(buf)
			if err != nil {
				t.Fatal(err)
			}
			check(t, i, string(buf[:n]))
		}
	})
	t.Run("stream", func(t *testing.T) {
		t.Parallel()
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		export(t, "syslog:tcp:"+l.Addr().String(), list()...)
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		r := bufio.NewReader(c)
		for i := range 2 {
			var n int
			if _, err := fmt.Fscanf(r, "%d ", &n); err != nil {
				t.Fatal(err)
			}
			msg := make([]byte, n)
			if _, err := io.ReadFull(r, msg); err != nil {
				t.Fatal(err)
			}
			check(t, i, string(msg))
		}
	})
	t.Run("nobody listens", func(t *testing.T) {
		t.Parallel()
		l := export(t, "syslog:"+filepath.Join(t.TempDir(), "none"), list()...)
		if n := l.Stats().Unsent.Load(); n != 2 {
			t.Errorf("%d entries are counted as unsent", n)
		}
	})
}

// flaky takes so many rows of a call and fails for the others.
type flaky struct {
	takes []int // of each call; behind them none
	calls int
	got   []string
}

func (f *flaky) send(rows []*core.AuditEntry) (int, error) {
	n := 0
	if f.calls < len(f.takes) {
		n = min(f.takes[f.calls], len(rows))
	}
	f.calls++
	for _, e := range rows[:n] {
		f.got = append(f.got, e.Object)
	}
	if n < len(rows) {
		return n, errors.New("away")
	}
	return n, nil
}

func (f *flaky) Close() error { return nil }

// A receiver that breaks off gets the rest, no row twice; one that is away holds up neither the server nor its end.
func TestExportResumes(t *testing.T) {
	t.Parallel()
	to := &flaky{takes: []int{2, 3}}
	e := &exporter{rows: make(chan []*core.AuditEntry, 64), to: to, log: quiet(), stats: new(Stats)}
	rows := []*core.AuditEntry{entry("u", "a", "1", "ok"), entry("u", "a", "2", "ok"), entry("u", "a", "3", "ok")}
	e.try(rows)
	if !slices.Equal(to.got, []string{"1", "2", "3"}) || e.stats.Unsent.Load() != 0 {
		t.Errorf("got %v, %d unsent", to.got, e.stats.Unsent.Load())
	}
	for range 10 {
		e.send(rows)
	}
	e.down = true // it was away at the last attempt
	e.ends.Store(true)
	e.start()()
	if to.calls != 2 || e.stats.Unsent.Load() != 30 {
		t.Errorf("%d calls, %d unsent", to.calls, e.stats.Unsent.Load())
	}
}

// Whoever acts on decoys first does not hide the object they are after.
func TestDecoysHideNoObject(t *testing.T) {
	t.Parallel()
	var l limiter
	var told []string
	for i := range 6 {
		if e := l.admit(entry("mallory", "job.env", fmt.Sprintf("job %d", i), "ok")); e != nil {
			told = append(told, e.Object+e.Detail)
		}
	}
	for range 1000 {
		l.admit(entry("mallory", "job.env", "job 7777777", "ok"))
	}
	for _, e := range l.closeWindow() {
		told = append(told, e.Object+e.Detail)
		if len(e.Detail) > maxObjects+100 || !strings.HasSuffix(e.Detail, " more") {
			t.Errorf("%d bytes of detail: %.80s", len(e.Detail), e.Detail)
		}
	}
	for i := range 6 {
		if !strings.Contains(strings.Join(told, "|"), fmt.Sprintf("job %d", i)) {
			t.Errorf("job %d is not told: %.200q", i, told)
		}
	}
}

// A pipe whose reader stops reading holds up neither the writer nor the end of the server.
func TestExportToAPipeNobodyReads(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	reader, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	var list []*core.AuditEntry
	for range 200 { // more than a pipe holds
		list = append(list, &core.AuditEntry{User: "u", Action: "a", Object: "o", Message: strings.Repeat("x", 500)})
	}
	if l := export(t, "file:"+path, list...); l.Stats().Unsent.Load() == 0 {
		t.Error("everything was sent")
	}
}
