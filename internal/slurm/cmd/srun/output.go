package srun

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/slurm"
	"bireme.dev/bireme/internal/slurm/cmd"
)

// lane is one stream of one task.
type lane struct {
	rank int32
	fd   int8
}

// output writes what tasks print: to srun's own streams or to files, whole lines with a label when labels are asked for.
type output struct {
	w      *cmd.World
	r      *slurm.Request
	label  int // width of the rank, 0 for none
	names  core.FilenameNames
	node   map[int32]core.NodeName // of each rank
	at     map[int32]int           // index of its node
	files  map[string]*os.File
	rest   map[lane][]byte // labelled output up to the end of its line
	lines  []byte          // labelled output to be written, kept for its room
	failed error
}

// modes of -o, -e and -i that are no file.
func isMode(value string) bool {
	if value == "" || value == "all" || value == "none" {
		return true
	}
	_, err := strconv.Atoi(value)
	return err == nil
}

// where gives the pattern or mode for a stream: standard error follows -o unless it has its own.
func (o *output) where(fd int8) string {
	io := &o.r.Spec.IO
	if fd == 2 && io.Stderr != "" {
		return io.Stderr
	}
	return io.Stdout
}

// target finds the writer for a stream of a task; nil throws its output away.
func (o *output) target(l lane) (io.Writer, error) {
	place := o.where(l.fd)
	if isMode(place) {
		switch {
		case place == "none":
			return nil, nil
		case place != "" && place != "all":
			if n, _ := strconv.Atoi(place); int32(n) != l.rank {
				return nil, nil
			}
		}
		if l.fd == 2 {
			return o.w.Err, nil
		}
		return o.w.Out, nil
	}
	names := o.names
	names.Node, names.NodeIndex = o.node[l.rank], o.at[l.rank]
	path := o.r.Path(core.ExpandFilename(place, names, int(l.rank)))
	if f := o.files[path]; f != nil {
		return f, nil
	}
	mode := os.O_CREATE | os.O_WRONLY | os.O_TRUNC
	if o.r.Spec.IO.Append {
		mode = os.O_CREATE | os.O_WRONLY | os.O_APPEND
	}
	f, err := os.OpenFile(path, mode, 0o666)
	if err != nil {
		return nil, err
	}
	o.files[path] = f
	return f, nil
}

// write takes a piece of output; an empty one is its end.
func (o *output) write(l lane, data []byte) {
	to, err := o.target(l)
	if err != nil {
		if o.failed == nil {
			o.failed = err
			o.w.Errorf("Could not open stdout file: %v", err)
		}
		return
	}
	if to == nil {
		return
	}
	if o.label == 0 {
		_, err = to.Write(data)
	} else {
		err = o.labelled(to, l, data)
	}
	if err != nil && o.failed == nil {
		o.failed = err
	}
}

// labelled puts the rank before every line. What follows the last line's end is kept, the rest is written from one buffer.
func (o *output) labelled(to io.Writer, l lane, data []byte) error {
	prefix := fmt.Sprintf("%*d: ", o.label, l.rank)
	ended := len(data) == 0
	rest := o.rest[l]
	out := o.lines[:0]
	for {
		i := bytes.IndexByte(data, '\n')
		if i < 0 {
			break
		}
		out = append(append(append(out, prefix...), rest...), data[:i+1]...)
		data, rest = data[i+1:], rest[:0]
	}
	if len(data) > 0 {
		rest = append(rest, data...)
	} else if ended && len(rest) > 0 { // a last line without its newline
		out = append(append(append(out, prefix...), rest...), '\n')
		rest = rest[:0]
	}
	o.rest[l], o.lines = rest, out
	if len(out) == 0 {
		return nil
	}
	_, err := to.Write(out)
	return err
}

// close ends all files.
func (o *output) close() {
	for l := range o.rest {
		o.write(l, nil)
	}
	for _, f := range o.files {
		if err := f.Close(); err != nil {
			o.w.Errorf("%v", err)
		}
	}
}

// newOutput prepares the output of a step whose tasks are laid out by ranks.
func (s *run) newOutput() *output {
	st := &s.parts[0].made.Step
	o := &output{
		w: s.w, r: s.r, node: map[int32]core.NodeName{}, at: map[int32]int{}, files: map[string]*os.File{}, rest: map[lane][]byte{},
		names: core.FilenameNames{Job: st.Job, Step: strconv.Itoa(int(st.ID)), User: core.UserName(s.w.Getenv("USER")), JobName: s.r.Spec.Name},
	}
	highest := int32(0)
	before := 0
	for _, p := range s.parts {
		for i, ranks := range p.made.Ranks {
			for _, r := range ranks {
				o.node[r], o.at[r] = p.made.Step.Nodes[i], before+i
				highest = max(highest, r)
			}
		}
		before += len(p.made.Ranks)
	}
	if s.r.Step.Label {
		o.label = len(strconv.Itoa(int(highest)))
	}
	return o
}

// inputRank is which task gets standard input: -1 for all; ok is false for none.
func inputRank(mode string) (rank int32, ok bool) {
	switch mode {
	case "", "all":
		return -1, true
	case "none":
		return 0, false
	}
	if n, err := strconv.Atoi(strings.TrimSpace(mode)); err == nil {
		return int32(n), true
	}
	return -1, true
}
