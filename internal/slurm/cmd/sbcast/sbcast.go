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
	blockUsual  = 1 << 20
	blockMost   = 8 << 20
)

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
	s, err := prepare(w, f)
	if err != nil {
		w.Errorf("%v", err)
		return slurm.ExitError
	}
	defer s.file.Close()
	return s.run(ctx)
}

// sender is the command.
type sender struct {
	w      *cmd.World
	job    string
	file   *os.File
	head   header
	order  order
	fanout int
	block  int
}

func prepare(w *cmd.World, f cmd.Flags) (*sender, error) {
	if len(f.Operands) != 2 {
		return nil, fmt.Errorf("Need two file names, have %d names", len(f.Operands))
	}
	if f.Has("send-libs") && f.Get("send-libs") != "no" {
		return nil, fmt.Errorf("--send-libs is not supported: copy the libraries one by one, and name their folder " +
			"in LD_LIBRARY_PATH")
	}
	s := &sender{w: w, job: f.Get("jobid"), fanout: fanoutUsual, block: blockUsual}
	if s.job == "" {
		if s.job = w.Getenv("SLURM_JOB_ID"); s.job == "" {
			return nil, fmt.Errorf("Command only valid from within Slurm job")
		}
	}
	s.job, _, _ = strings.Cut(s.job, ".") // to the nodes of the job's step, which are of the job
	if v := f.Get("fanout"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("Invalid fanout: %s", v)
		}
		s.fanout = min(n, fanoutMost)
	}
	if v := f.Get("size"); v != "" {
		n, err := blockSize(v)
		if err != nil {
			return nil, err
		}
		s.block = n
	}
	path := f.Operands[0]
	if !filepath.IsAbs(path) {
		path = filepath.Join(w.Dir, path)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("Can't open `%s`: %s", f.Operands[0], reason(err))
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("`%s` is not a regular file", f.Operands[0])
	}
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	s.file = file
	s.head = header{
		Size: info.Size(), Mode: uint32(info.Mode().Perm()), Time: info.ModTime().UnixNano(),
		Packed: f.Has("compress") && f.Get("compress") != "none",
	}
	dest := f.Operands[1]
	if strings.HasSuffix(dest, "/") {
		dest += filepath.Base(path)
	}
	if !filepath.IsAbs(dest) {
		dest = filepath.Join(w.Dir, dest)
	}
	s.order = order{Dest: dest, Force: f.Has("force"), Preserve: f.Has("preserve"), Began: w.Now().UnixNano()}
	return s, nil
}

func blockSize(text string) (int, error) {
	digits, unit := text, 1
	switch text[len(text)-1] {
	case 'k', 'K':
		digits, unit = text[:len(text)-1], 1<<10
	case 'm', 'M':
		digits, unit = text[:len(text)-1], 1<<20
	}
	n, err := strconv.Atoi(digits)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("Invalid size: %s", text)
	}
	return min(max(n, 1), blockMost) * min(unit, blockMost/min(n, blockMost)), nil
}

// reason is an error as C programs write it.
func reason(err error) string {
	var of *os.PathError
	var errno syscall.Errno
	if errors.As(err, &of) && errors.As(of.Err, &errno) {
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
			code := s.step(ctx, strings.NewReader(""), "none", t.expect)
			if code != exitUnreached {
				return code
			}
		}
	}
	s.order.Addrs = nil
	r, pipe := io.Pipe()
	go func() { pipe.CloseWithError(s.write(pipe)) }() // ends with the file, or with the reader
	defer r.Close()
	return s.step(ctx, r, "all", nil)
}

// step runs the receiving end on all nodes of the job. expect is told how many there are.
func (s *sender) step(ctx context.Context, in io.Reader, input string, expect func(nodes int)) int {
	text, err := json.Marshal(s.order)
	if err != nil {
		s.w.Errorf("%v", err)
		return slurm.ExitError
	}
	w := *s.w
	w.In = in
	w.Environ = append(w.Environ[:len(w.Environ):len(w.Environ)], variable+"="+string(text))
	nodes, err := s.nodes(ctx)
	if err != nil {
		s.w.Errorf("Unable to read job %s: %s", s.job, slurm.ErrorText(err))
		return slurm.ExitError
	}
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
		"-i", input, "-J", "sbcast", "-D", "/",
		"/bin/sh", "-c",
		`[ -x "$BIREME_EXE" ] || { echo "sbcast: error: there is no bireme beside this node's agent" >&2; exit 1; }; ` +
			`exec "$BIREME_EXE" sbcast`,
	})
}

func (s *sender) nodes(ctx context.Context) (int, error) {
	c, err := s.w.Client()
	if err != nil {
		return 0, err
	}
	list, err := c.Job(ctx, s.job)
	if err != nil {
		return 0, err
	}
	n := 0
	if a := list.Jobs[0].Alloc; a != nil {
		n = len(a.Nodes)
	}
	return max(1, n), nil
}
