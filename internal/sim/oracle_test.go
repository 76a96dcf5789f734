package sim_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"flag"
	"os"
	"strings"
	"sync"
	"testing"

	"bireme.dev/bireme/internal/engine/state"
)

var rewrite = flag.Bool("rewrite", false, "record what happened into testdata/oracle.txt")

const (
	logsFile   = "testdata/oracle.gz"  // command logs; see commandlog_test.go of engine/state
	hashesFile = "testdata/oracle.txt" // a line a log: its name, and a hash for each batch
)

// TestOracle replays logs of commands against the state and the planner and compares a hash after each command with the
// recorded one. The commands are data, not decisions: what a plan said to start when the log was made is started on
// replay too, so that the first hash that differs names the command that decides otherwise.
//
// A hash covers what was answered, stored and told (records and events in their stored form), what the planner decides
// afterwards, why each job waits and when it will start. It covers no name of a Go identifier and no text of a refusal.
//
// A change of behavior that is meant: `go test ./internal/sim -run Oracle -rewrite`, and say so in the commit. Show
// what a log does with -v -run 'Oracle/NAME$' -show.
func TestOracle(t *testing.T) {
	logs := readLogs(t)
	want := readHashes(t)
	var mu sync.Mutex
	got := map[string][]hash{}
	t.Run("logs", func(t *testing.T) {
		for _, l := range logs {
			t.Run(l.name, func(t *testing.T) {
				t.Parallel()
				hashes := l.replay(t)
				mu.Lock()
				got[l.name] = hashes
				mu.Unlock()
				if !*rewrite {
					l.compare(t, want[l.name], hashes)
				}
			})
		}
	})
	if *rewrite && !t.Failed() {
		writeHashes(t, logs, got)
	}
}

// commandLog is a log: its first line names it and gives the settings, the others are commands.
type commandLog struct {
	name  string
	lines [][]byte
}

// line is one line of a log. One of its parts is set.
type line struct {
	Log     string        `json:"log"`     // the name of a log that begins, with Config
	Restart bool          `json:"restart"` // the state is built from what was stored, with Config
	Config  *state.Config `json:"config"`
	state.Record
}

func (l *commandLog) parse(t *testing.T, i int) *line {
	t.Helper()
	var x line
	d := json.NewDecoder(bytes.NewReader(l.lines[i]))
	d.DisallowUnknownFields()
	if err := d.Decode(&x); err != nil {
		t.Fatalf("line %d: %v; names in recordings must stay:\n%s", i, err, l.lines[i])
	}
	return &x
}

func readLogs(t *testing.T) (out []*commandLog) {
	t.Helper()
	f, err := os.Open(logsFile)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	in := bufio.NewScanner(z)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		text := bytes.Clone(in.Bytes())
		if bytes.HasPrefix(text, []byte(`{"config":`)) {
			var x struct {
				Log string `json:"log"`
			}
			if err := json.Unmarshal(text, &x); err != nil {
				t.Fatal(err)
			}
			if x.Log != "" {
				out = append(out, &commandLog{name: x.Log})
			}
		}
		l := out[len(out)-1]
		l.lines = append(l.lines, text)
	}
	if err := in.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

func readHashes(t *testing.T) map[string][]string {
	t.Helper()
	data, err := os.ReadFile(hashesFile)
	if err != nil && !*rewrite {
		t.Fatal(err)
	}
	out := map[string][]string{}
	for text := range strings.Lines(string(data)) {
		words := strings.Fields(text)
		out[words[0]] = words[1:]
	}
	return out
}

func writeHashes(t *testing.T, logs []*commandLog, hashes map[string][]hash) {
	t.Helper()
	var b bytes.Buffer
	for _, l := range logs {
		b.WriteString(l.name)
		for _, h := range hashes[l.name] {
			b.WriteString(" " + h.sum)
		}
		b.WriteByte('\n')
	}
	if err := os.WriteFile(hashesFile, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (l *commandLog) compare(t *testing.T, want []string, got []hash) {
	t.Helper()
	if len(want) != len(got) {
		t.Fatalf("%d hashes are recorded, and there are %d", len(want), len(got))
	}
	from := 0
	for i, h := range got {
		if want[i] != h.sum {
			t.Fatalf("lines %d to %d of %d: hash %s, recorded %s:\n%.4000s", from, h.line, len(l.lines), h.sum, want[i],
				bytes.Join(l.lines[from:h.line+1], []byte("\n")))
		}
		from = h.line + 1
	}
}
