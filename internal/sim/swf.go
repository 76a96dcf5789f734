package sim

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Job is one usable line of a trace. Times are in seconds, as the trace counts them.
type Job struct {
	Number   int64 // as the trace numbers it
	Submit   int64
	Run      int64
	Estimate int64 // never less than Run
	Procs    int64
	index    int64 // its place among the usable lines of the file
}

// Fault is a line that cannot be read.
type Fault struct {
	File  string `json:"file"`
	Line  int64  `json:"line"`
	Field int    `json:"field"` // 1 is the job number; 0: the line as a whole
	Text  string `json:"text"`
}

func (f *Fault) Error() string {
	where := fmt.Sprintf("%s:%d: ", f.File, f.Line)
	if f.Field > 0 {
		where += fmt.Sprintf("field %d (%s): ", f.Field, fieldNames[f.Field])
	}
	return where + f.Text
}

// fields is how many a line of the Standard Workload Format has.
const fields = 18

var fieldNames = [fields + 1]string{
	1: "job number", 2: "submit time", 3: "wait time", 4: "run time", 5: "allocated processors", 6: "average CPU time",
	7: "used memory", 8: "requested processors", 9: "requested time", 10: "requested memory", 11: "status", 12: "user",
	13: "group", 14: "executable", 15: "queue", 16: "partition", 17: "preceding job", 18: "think time",
}

// maxSeconds bounds times: above any workload, below where microseconds and nanoseconds in 64 bits go wrong.
const maxSeconds = 4_000_000_000

// maxLine bounds a line: 18 numbers need a few hundred bytes.
const maxLine = 64 << 10

// Dropped counts jobs that no machine could run or that never ran, by cause.
type Dropped struct {
	NoRunTime    int64 `json:"no_run_time"`   // run time of 0 or less: canceled in the queue
	NoProcessors int64 `json:"no_processors"` // neither requested nor allocated
	TooLarge     int64 `json:"too_large"`     // more processors than the machine has
}

// Total is all of them.
func (d Dropped) Total() int64 { return d.NoRunTime + d.NoProcessors + d.TooLarge }

// Reader reads a trace in the Standard Workload Format, plain or compressed by gzip, line by line.
type Reader struct {
	name   string
	in     *bufio.Reader
	line   int64
	ahead  []byte // the first line after the header, not yet read as a job
	header map[string]string
	procs  int64
	job    Job
	last   int64 // submit time of the job before
	count  int64 // usable jobs so far
	strict bool  // refuse submit times that go back

	Dropped   Dropped
	Malformed int64
	// Report is told of every malformed line; nil: they are only counted.
	Report func(*Fault)
}

// ErrOrder is returned by Next when a job was submitted before the one above it: the trace cannot be run as it is read.
// Sorted takes such a trace.
var ErrOrder = errors.New("submit times go back")

// NewReader reads the header of a trace. The name is for messages.
func NewReader(name string, r io.Reader) (*Reader, error) {
	in := bufio.NewReaderSize(r, maxLine)
	if magic, _ := in.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(in)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		in = bufio.NewReaderSize(z, maxLine)
	}
	t := &Reader{name: name, in: in, header: map[string]string{}, strict: true}
	for {
		line, err := t.next()
		if errors.Is(err, io.EOF) {
			return t, nil
		}
		if err != nil {
			return nil, err
		}
		if line[0] != ';' {
			t.ahead = line
			return t, nil
		}
		if key, value, ok := strings.Cut(strings.TrimLeft(string(line), "; \t"), ":"); ok {
			t.header[strings.TrimSpace(key)] = strings.TrimSpace(value)
		}
	}
}

// Procs is the size of the trace's machine by its header: MaxProcs, else MaxNodes; 0 if it says neither.
func (t *Reader) Procs() int64 {
	for _, key := range []string{"MaxProcs", "MaxNodes"} {
		word, _, _ := strings.Cut(t.header[key], " ")
		if n, err := strconv.ParseInt(word, 10, 32); err == nil && n > 0 {
			return n
		}
	}
	return 0
}

// Limit sets the size of the machine: larger jobs are dropped and counted. It must come before Next.
func (t *Reader) Limit(procs int64) { t.procs = procs }

// Next gives the next usable job; io.EOF after the last. What it returns is good until it is called again.
func (t *Reader) Next() (*Job, error) {
	for {
		line := t.ahead
		t.ahead = nil
		if line == nil {
			var err error
			if line, err = t.next(); err != nil {
				return nil, err
			}
		}
		if line[0] == ';' {
			continue
		}
		if f := t.parse(line); f != nil {
			t.fault(f)
			continue
		}
		j := &t.job
		switch {
		case j.Run <= 0:
			t.Dropped.NoRunTime++
		case j.Procs <= 0:
			t.Dropped.NoProcessors++
		case j.Procs > t.procs:
			t.Dropped.TooLarge++
		case j.Submit < t.last && t.strict:
			return nil, fmt.Errorf("%s:%d: %w: job %d at %d after %d", t.name, t.line, ErrOrder, j.Number, j.Submit, t.last)
		default:
			t.last, j.index = j.Submit, t.count
			t.count++
			return j, nil
		}
	}
}

func (t *Reader) fault(f *Fault) {
	f.File, f.Line = t.name, t.line
	t.Malformed++
	if t.Report != nil {
		t.Report(f)
	}
}

// next gives the next line that is not empty, without blanks around it.
func (t *Reader) next() ([]byte, error) {
	for {
		line, err := t.in.ReadSlice('\n')
		if len(line) > 0 || err == nil {
			t.line++
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			for errors.Is(err, bufio.ErrBufferFull) {
				_, err = t.in.ReadSlice('\n')
			}
			t.fault(&Fault{Text: fmt.Sprintf("the line is longer than %d bytes", maxLine)})
			if err == nil {
				continue
			}
			line = nil
		case err == io.EOF && len(line) > 0:
			err = nil // the last line may lack its end
		}
		if err == io.EOF {
			return nil, io.EOF
		}
		if err != nil {
			return nil, fmt.Errorf("%s: after line %d: %w", t.name, t.line, err)
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			return line, nil
		}
	}
}

// parse reads a line into t.job.
func (t *Reader) parse(line []byte) *Fault {
	var v [fields + 1]int64
	n := 0
	for len(line) > 0 {
		end := 0
		for end < len(line) && line[end] != ' ' && line[end] != '\t' {
			end++
		}
		word := line[:end]
		for end < len(line) && (line[end] == ' ' || line[end] == '\t') {
			end++
		}
		line = line[end:]
		if n == fields { // some archives add columns of their own
			break
		}
		n++
		var ok bool
		if v[n], ok = number(word); ok {
			continue
		}
		// Only averages are fractions in real traces; nothing here reads them.
		if _, err := strconv.ParseFloat(string(word), 64); err != nil || used(n) {
			return &Fault{Field: n, Text: fmt.Sprintf("%q is not a whole number", clip(word))}
		}
	}
	if n < fields {
		return &Fault{Field: n + 1, Text: fmt.Sprintf("it is missing: the line has %d fields, not %d", n, fields)}
	}
	for _, f := range [...]int{2, 4, 9} {
		if v[f] > maxSeconds {
			return &Fault{Field: f, Text: fmt.Sprintf("%d is more than %d seconds", v[f], int64(maxSeconds))}
		}
	}
	if v[2] < 0 {
		return &Fault{Field: 2, Text: fmt.Sprintf("%d is no time to submit a job at", v[2])}
	}
	procs := v[8]
	if procs <= 0 {
		procs = v[5]
	}
	t.job = Job{Number: v[1], Submit: v[2], Run: v[4], Estimate: max(v[9], v[4]), Procs: procs}
	return nil
}

// used reports whether the simulator goes by a field.
func used(n int) bool { return n == 1 || n == 2 || n == 4 || n == 5 || n == 8 || n == 9 }

func clip(word []byte) string {
	if len(word) > 40 {
		return string(word[:40]) + "…"
	}
	return string(word)
}

// number reads a whole number; most have few digits.
func number(word []byte) (int64, bool) {
	neg := len(word) > 0 && word[0] == '-'
	digits := word
	if neg {
		digits = word[1:]
	}
	if len(digits) == 0 || len(digits) > 18 {
		return 0, false
	}
	var v int64
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		v = v*10 + int64(c-'0')
	}
	if neg {
		v = -v
	}
	return v, true
}
