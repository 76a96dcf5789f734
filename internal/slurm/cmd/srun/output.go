package srun

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/filename"
	"bireme.dev/bireme/internal/slurm"
	"bireme.dev/bireme/internal/slurm/cmd"
	"bireme.dev/bireme/internal/wire/ranklog"
)

// output writes what tasks print: to srun's own streams or to files, whole lines with a label when labels are asked
// for.
type output struct {
	w      *cmd.World
	r      *slurm.Request
	label  *cmd.Labels  // nil: none
	marks  *ranklog.Mux // of a YAML run, whose log tells whose output is what; nil: none
	names  filename.Names
	node   map[int32]core.NodeName // of each rank
	at     map[int32]int           // index of its node
	files  map[string]*os.File
	failed error
	closed bool // nobody reads srun's own output any more
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
func (o *output) target(l cmd.Lane) (io.Writer, error) {
	place := o.where(l.FD)
	if isMode(place) {
		switch {
		case place == "none":
			return nil, nil
		case place != "" && place != "all":
			if n, _ := strconv.Atoi(place); int32(n) != l.Rank {
				return nil, nil
			}
		}
		if l.FD == 2 {
			return o.w.Err, nil
		}
		return o.w.Out, nil
	}
	names := o.names
	names.Node, names.NodeIndex = o.node[l.Rank], o.at[l.Rank]
	path := o.r.Path(filename.Expand(place, names, int(l.Rank)))
	if f := o.files[path]; f != nil {
		return f, nil
	}
	mode := os.O_CREATE | os.O_WRONLY | os.O_TRUNC
	if o.r.Spec.IO.Append {
		mode = os.O_CREATE | os.O_WRONLY | os.O_APPEND
	}
	f, err := os.OpenFile(path, mode, 0o666)
	if errors.Is(err, fs.ErrNotExist) && os.MkdirAll(filepath.Dir(path), 0o755) == nil {
		f, err = os.OpenFile(path, mode, 0o666)
	}
	if err != nil {
		return nil, err
	}
	o.files[path] = f
	return f, nil
}

// write takes a piece of output; an empty one is its end.
func (o *output) write(l cmd.Lane, data []byte) {
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
	if o.label != nil {
		data = o.label.Add(l, data)
	}
	switch {
	case len(data) == 0:
	case o.marks != nil && (to == o.w.Out || to == o.w.Err):
		_, err = o.marks.Write(int(l.Rank), data)
	default:
		_, err = to.Write(data)
	}
	if err != nil && o.failed == nil {
		o.failed = err
		o.closed = errors.Is(err, syscall.EPIPE)
	}
}

// close ends all files.
func (o *output) close() {
	if o.label != nil {
		for _, l := range o.label.Open() {
			o.write(l, nil)
		}
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
		w: s.w, r: s.r, node: map[int32]core.NodeName{}, at: map[int32]int{}, files: map[string]*os.File{},
		names: filename.Names{
			Job: st.Job, Step: strconv.Itoa(int(st.ID)), User: core.UserName(s.w.Getenv("USER")),
			JobName: s.r.Spec.Name,
		},
	}
	if s.array != nil {
		o.names.ArrayJob, o.names.ArrayTask = s.array.Base, int64(s.array.Task)
	}
	if s.w.Getenv(ranklog.Variable) != "" {
		o.marks = ranklog.NewMux(s.w.Out)
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
		o.label = cmd.NewLabels(highest)
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
