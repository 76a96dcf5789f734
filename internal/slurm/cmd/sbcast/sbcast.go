// Package sbcast is the command that copies a file to all nodes of a job. It runs itself on each as a step that shares
// all with others. The copies pass from node to node in a tree: the command sends to the first few, and each sends on
// to those below it. Where nodes cannot reach the command the file goes to all of them by the step's own input.
package sbcast

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/hostlist"
	"bireme.dev/bireme/internal/slurm"
	"bireme.dev/bireme/internal/slurm/cmd"
	"bireme.dev/bireme/internal/slurm/cmd/srun"
	"bireme.dev/bireme/internal/slurm/getopt"
)

// variable tells the command that it is at the receiving end, and how.
const variable = "BIREME_SBCAST"

// exitUnreached is what the receiving end leaves with when it cannot reach the command.
const exitUnreached = 75

var parser = &getopt.Parser{Permute: true, Options: []getopt.Option{
	{Long: "compress", Short: 'C', Arg: getopt.OptionalArg},
	{Long: "exclude", Arg: getopt.RequiredArg},
	{Long: "fanout", Short: 'F', Arg: getopt.RequiredArg},
	{Long: "force", Short: 'f'},
	{Long: "jobid", Short: 'j', Arg: getopt.RequiredArg},
	{Long: "preserve", Short: 'p'},
	{Long: "send-libs", Arg: getopt.OptionalArg},
	{Long: "size", Short: 's', Arg: getopt.RequiredArg},
	{Long: "timeout", Short: 't', Arg: getopt.RequiredArg},
	{Key: "fanout", Long: "treewidth", Arg: getopt.RequiredArg},
	{Long: "verbose", Short: 'v'},
	{Long: "version", Short: 'V'},
	{Long: "help"},
	{Long: "usage"},
}}

// Options is the table of its options.
func Options() *getopt.Parser { return parser }

// Bounds of what options may say.
const (
	fanoutUsual = 8
	fanoutMost  = 64
	blockMost   = 8 << 20
)

// exitLost is what the command leaves with where the job or the file is not there.
const exitLost = 255

// order is what the receiving end is told.
type order struct {
	Dest     string   `json:"dest"`
	Force    bool     `json:"force,omitempty"`
	Preserve bool     `json:"preserve,omitempty"`
	Began    int64    `json:"began,omitempty"` // nanoseconds: what is older was there before
	Addrs    []string `json:"addrs,omitempty"` // of the command; none: the file comes by standard input
	Print    string   `json:"print,omitempty"`
	Secret   string   `json:"secret,omitempty"`
}

// Run is the command.
func Run(ctx context.Context, w *cmd.World, args []string) int {
	if text := w.Getenv(variable); text != "" {
		return receiveMain(ctx, w, text)
	}
	f, code, ok := w.Begin(parser, args)
	if !ok {
		return code
	}
	addEnvironment(w, &f)
	s, err := prepare(w, f)
	if err == nil {
		defer s.file.Close()
		err = s.findNodes(ctx)
	}
	if err != nil {
		return w.Complain(err)
	}
	if s.loud {
		w.Infof("jobid      = %s", s.named)
		w.Infof("node_list  = %s", hostlist.Fold(s.nodes))
	}
	return s.run(ctx)
}

// sender is the command.
type sender struct {
	w      *cmd.World
	named  string // the job or step as it was named
	job    string
	step   string // of the job, empty: all its nodes
	nodes  []string
	loud   bool
	file   *os.File
	head   header
	order  order
	fanout int
	block  int
}

// complaint is an error with Slurm's exit code.
func complaint(w *cmd.World, exit int, format string, args ...any) error {
	return &slurm.Complaint{Lines: []string{w.Name + ": error: " + fmt.Sprintf(format, args...)}, Exit: exit}
}

func prepare(w *cmd.World, f cmd.Flags) (*sender, error) {
	o, err := readWish(w, f)
	if err != nil {
		return nil, complaint(w, slurm.ExitError, "%v", err)
	}
	if len(f.Operands) != 2 {
		return nil, &slurm.Complaint{Exit: slurm.ExitError, Lines: []string{
			fmt.Sprintf("Need two file names, have %d names", len(f.Operands)), `Try "sbcast --help" for more information`,
		}}
	}
	s := &sender{w: w, named: f.Get("jobid"), fanout: fanoutUsual, block: blockMost, loud: f.Has("verbose")}
	if s.named == "" {
		if s.named = w.Getenv("SLURM_JOB_ID"); s.named == "" {
			return nil, complaint(w, slurm.ExitError,
				"Need a job id to run this command.  Run from within a Slurm job or use the --jobid option.")
		}
	}
	var isStep bool
	if s.job, s.step, isStep = strings.Cut(s.named, "."); isStep {
		if _, err := strconv.ParseUint(s.step, 10, 31); err != nil {
			return nil, &slurm.Complaint{Exit: slurm.ExitError, Lines: []string{
				w.Name + ": fatal: Bad step specified: " + s.job,
			}}
		}
	}
	if o.fanout > 0 {
		s.fanout = int(min(o.fanout, fanoutMost))
	}
	if o.size > 0 {
		s.block = int(min(o.size, blockMost))
	}
	if strings.HasSuffix(f.Operands[1], "/") {
		return nil, complaint(w, slurm.ExitError, "Target filename cannot be a directory.")
	}
	if s.loud {
		o.show(w, f, f.Count("verbose"))
	}
	return s, s.open(f.Operands[0], f.Operands[1], o)
}

// open opens the file and tells of it.
func (s *sender) open(source, dest string, o *wish) error {
	path := source
	if !filepath.IsAbs(path) {
		path = filepath.Join(s.w.Dir, path)
	}
	file, err := os.Open(path)
	if err != nil {
		return complaint(s.w, exitLost, "Can't open `%s`: %s", source, reason(err))
	}
	info, err := file.Stat()
	switch {
	case err != nil:
		err = complaint(s.w, exitLost, "Can't stat `%s`: %s", source, reason(err))
	case info.IsDir():
		err = complaint(s.w, exitLost, "Can't mmap file `%s`, No such device.", source)
	}
	if err != nil {
		_ = file.Close()
		return err
	}
	s.head = header{
		Mode: uint32(info.Mode().Perm()), Time: info.ModTime().UnixNano(), Packed: o.compress == packed,
	}
	if info.Mode().IsRegular() {
		s.head.Size = info.Size()
	}
	if s.loud {
		tellFile(s.w, info)
	}
	if s.head.Size == 0 {
		s.w.Errorf("Warning: file `%s` is empty.", source)
	}
	s.file = file
	if !filepath.IsAbs(dest) {
		dest = filepath.Join(s.w.Dir, dest)
	}
	s.order = order{Dest: dest, Force: o.force, Preserve: o.preserve, Began: s.w.Now().UnixNano()}
	return nil
}

// reason is an error as C programs write it.
func reason(err error) string {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		text := errno.Error()
		return strings.ToUpper(text[:1]) + text[1:]
	}
	return err.Error()
}

// run sends the file, in a tree if the nodes can be reached.
func (s *sender) run(ctx context.Context) int {
	if s.w.Getenv("BIREME_DIRECT") != "off" {
		t, err := openTree(s)
		if err == nil {
			defer t.close()
			s.order.Addrs, s.order.Print, s.order.Secret = t.addrs, t.print, t.secret
			code := s.runStep(ctx, strings.NewReader(""), "none", t.expect)
			if code != exitUnreached {
				return code
			}
		}
	}
	s.order.Addrs = nil
	r, pipe := io.Pipe()
	go func() { pipe.CloseWithError(s.write(pipe)) }() // ends with the file, or with the reader
	defer r.Close()
	return s.runStep(ctx, r, "all", nil)
}

// runStep runs the receiving end on all nodes of the job. expect is told how many there are.
func (s *sender) runStep(ctx context.Context, in io.Reader, input string, expect func(nodes int)) int {
	text, err := json.Marshal(s.order)
	if err != nil {
		s.w.Errorf("%v", err)
		return slurm.ExitError
	}
	w := *s.w
	w.In, w.Err = in, &quiet{to: s.w.Err}
	w.Environ = append(w.Environ[:len(w.Environ):len(w.Environ)], variable+"="+string(text))
	nodes := len(s.nodes)
	if expect != nil {
		expect(nodes)
	}
	n := strconv.Itoa(nodes)
	for i, e := range w.Environ { // sizes of the job are not those of the step
		if strings.HasPrefix(e, "SLURM_") && !strings.HasPrefix(e, "SLURM_JOB_ID=") {
			w.Environ[i] = "_" + e
		}
	}
	return srun.Run(ctx, &w, []string{
		"-Q", "--jobid=" + s.job, "--overlap", "--overcommit", "-N" + n, "-n" + n, "--mpi=none", "--cpu-bind=none",
		"-w", strings.Join(s.nodes, ","), "-i", input, "-J", "sbcast", "-D", "/",
		"/bin/sh", "-c",
		`[ -x "$BIREME_EXE" ] || { echo "sbcast: error: there is no bireme beside this node's agent" >&2; exit 1; }; ` +
			`exec "$BIREME_EXE" sbcast`,
	})
}

// findNodes finds the nodes of the job, or of the step that is named.
func (s *sender) findNodes(ctx context.Context) error {
	lost := func(text string) error {
		return complaint(s.w, exitLost, "Slurm job %s lookup error: %s", s.named, text)
	}
	c, err := s.w.Client()
	if err != nil {
		return lost(slurm.ErrorText(err))
	}
	list, err := c.Job(ctx, s.job)
	switch {
	case core.CodeOf(err) == core.Denied:
		return lost("Invalid user id")
	case err != nil:
		return lost(slurm.ErrorText(err))
	}
	j := &list.Jobs[0]
	switch {
	case j.State == core.Pending:
		return lost("Job is pending execution")
	case j.State.Final() || j.Alloc == nil:
		return lost("Job/step already completing or completed")
	}
	for i := range j.Alloc.Nodes {
		s.nodes = append(s.nodes, string(j.Alloc.Nodes[i].Node))
	}
	if s.step == "" {
		return nil
	}
	steps, err := c.Steps(ctx, s.job)
	if err != nil {
		return lost(slurm.ErrorText(err))
	}
	for i := range steps.Steps {
		if st := &steps.Steps[i]; strconv.Itoa(int(st.ID)) == s.step && !st.State.Final() {
			s.nodes = s.nodes[:0]
			for _, name := range st.Nodes {
				s.nodes = append(s.nodes, string(name))
			}
			return nil
		}
	}
	return lost("Invalid job id specified")
}
