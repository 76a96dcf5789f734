package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/sys/unix"

	"bireme.dev/bireme/test/hostile/flood"
)

// row is one line of the table.
type row struct {
	what   string
	value  string
	limit  string // what this machine allows, or a peer does
	ratio  string
	budget string
}

// suite carries the options and collects the table.
type suite struct {
	bin   string
	jobs  int
	many  int // jobs for restart and memory
	queue int // jobs for squeue
	nodes int // fake agents
	rows  []row
	lim   limits
	prof  string // folder for CPU profiles of the server
	only  []string
	flood []string // kinds of flood; none: all
	parts []string // of the rows of dstack; none: all
	logGB int      // size of the large log
}

func main() {
	printLines() // where this process is the run whose log is followed
	flood.Main() // where this process is the attacker of the hostile row
	var s suite
	var slurm bool
	var only, kinds, parts string
	flag.StringVar(&s.bin, "bin", envOr("BIREME_BIN", "bin"), "folder of the built binaries")
	flag.IntVar(&s.jobs, "jobs", 5000, "jobs of `true` in the end-to-end rows")
	flag.IntVar(&s.many, "many", 100_000, "pending jobs for the restart and memory rows")
	flag.IntVar(&s.queue, "queue", 50_000, "pending jobs for the squeue row")
	flag.IntVar(&s.nodes, "agents", 10_000, "fake agents of one server in the agents rows")
	flag.StringVar(&s.prof, "profile", "", "folder to write CPU profiles of the server into")
	flag.BoolVar(&slurm, "slurm", false, "only: the same work on Debian's Slurm and here, in the same run")
	flag.StringVar(&only, "only", "",
		"comma list of: "+
			"limits,submit,fsync,sbatch,start,true,squeue,restart,idle,agents,array,container,fleet,stream,"+
			"sched,traces,hostile,dstack")
	flag.StringVar(&kinds, "flood", "",
		"comma list of what floods in the hostile row: requests,tokens,submissions,streams,connections,jobs")
	flag.StringVar(&parts, "dstack", "", "comma list of what is measured in the rows of dstack: apply,many,logs,peer")
	flag.IntVar(&s.logGB, "log", 2, "size of the large log in the rows of dstack, in GB; 0: none")
	flag.Parse()
	if only != "" {
		s.only = strings.Split(only, ",")
	}
	if kinds != "" {
		s.flood = strings.Split(kinds, ",")
	}
	if parts != "" {
		s.parts = strings.Split(parts, ",")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	if scratch, err = os.MkdirTemp("", "bireme-bench-"); err == nil {
		if err = os.Chmod(scratch, 0o755); err == nil {
			spread(scratch)
			err = s.run(ctx, slurm)
		}
		os.RemoveAll(scratch)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// spread has ext4 put each folder in dir into a part of the disk with many free inodes, as it does with those of the
// root. Else they lie with all others of /tmp, and where thousands of files were removed in the minutes before, every
// new one costs a search among them: by as much as a job costs, sometimes on one side of a ratio alone. Other file
// systems have no such flag, and no such search.
func spread(dir string) {
	f, err := os.Open(dir)
	if err != nil {
		return
	}
	defer f.Close()
	flags, err := unix.IoctlGetInt(int(f.Fd()), unix.FS_IOC_GETFLAGS)
	if err == nil {
		_ = unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, flags|topDir)
	}
}

// topDir is FS_TOPDIR_FL of the kernel: top of directory hierarchies.
const topDir = 0x20000

func envOr(name, or string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return or
}

func (s *suite) wants(name string) bool { return len(s.only) == 0 || slices.Contains(s.only, name) }

func (s *suite) run(ctx context.Context, slurm bool) error {
	if slurm {
		progress("the same work on Slurm and here")
		if err := s.slurm(ctx); err != nil {
			return fmt.Errorf("slurm: %w", err)
		}
		s.print()
		return nil
	}
	if s.wants("limits") || s.wants("submit") || s.wants("true") { // the rows that are put beside them
		progress("measuring what this machine allows")
		var err error
		if s.lim, err = measureLimits(ctx); err != nil {
			return err
		}
	}
	steps := []struct {
		name string
		f    func(context.Context) error
	}{
		{"submit", s.submissions},
		{"fsync", s.slowDisk},
		{"sbatch", s.sbatch},
		{"start", s.startLatency},
		{"array", s.bigArray},
		{"true", s.trueJobs},
		{"squeue", s.squeue},
		{"restart", s.restart},
		{"idle", s.idle},
		{"agents", s.agents},
		{"container", s.containers},
		{"fleet", s.fleet},
		{"stream", s.streams},
		{"sched", s.sched},
		{"traces", s.traces},
		{"hostile", s.hostile},
		{"dstack", s.dstack},
	}
	for _, st := range steps {
		if !s.wants(st.name) {
			continue
		}
		progress("%s", st.name)
		if err := st.f(ctx); err != nil {
			return fmt.Errorf("%s: %w", st.name, err)
		}
	}
	s.print()
	return nil
}

func progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%s  %s\n", time.Now().Format("15:04:05"), fmt.Sprintf(format, args...))
}

func (s *suite) add(r row) {
	s.rows = append(s.rows, r)
	progress("  %-58s %s  (limit %s, ratio %s)", r.what, r.value, r.limit, r.ratio)
}

func (s *suite) print() {
	w := tabwriter.NewWriter(os.Stdout, 2, 8, 2, ' ', 0)
	fmt.Fprintln(w, "WHAT\tMEASURED\tLIMIT OR PEER\tRATIO\tFLOOR")
	for _, r := range s.rows {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", r.what, r.value, r.limit, r.ratio, r.budget)
	}
	w.Flush()
}
