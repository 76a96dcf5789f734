// Command bireme-step is the step keeper of a node: the parent of all user processes. Its agent starts it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"

	"bireme.dev/bireme/internal/nice"
	"bireme.dev/bireme/internal/step"
	"bireme.dev/bireme/internal/step/inherited"
)

// version is set by the build.
var version = "dev"

func main() {
	if len(os.Args) == 2 && os.Args[1] == step.InitArgument {
		step.Init()
	}
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bireme-step:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if err := inherited.Keep(); err != nil {
		return err
	}
	var cfg step.Config
	fs := flag.NewFlagSet("bireme-step", flag.ContinueOnError)
	fs.StringVar(&cfg.Dir, "dir", "", "state `directory` of this keeper (required)")
	fs.StringVar(&cfg.Spool, "spool", "", "`directory` for job scripts, reachable by users (default DIR/spool)")
	fs.StringVar(&cfg.Socket, "socket", "", "`path` of the socket the agent connects to (default DIR/keeper.sock)")
	fs.StringVar(&cfg.Cgroup, "cgroup", "", "`name` of the keeper's cgroups, below its own or from the root with a "+
		"leading slash; none: work without; pidns: with PID namespaces instead")
	fs.DurationVar(&cfg.Unkillable, "unkillable", time.Minute, "how long dying processes are waited for")
	show := fs.Bool("version", false, "print the version")
	if err := fs.Parse(args); errors.Is(err, flag.ErrHelp) {
		return nil
	} else if err != nil {
		return err
	}
	if *show {
		fmt.Println("bireme-step", version)
		return nil
	}
	if cfg.Dir == "" {
		return fmt.Errorf("--dir is required")
	}
	cfg.Program = version
	if err := nice.Lower(); err != nil { // jobs do not have the agent's
		return err
	}
	// Forking holds a scheduler slot until the child has executed, so with two there would be none left for the rest.
	runtime.GOMAXPROCS(max(4, runtime.NumCPU()))
	debug.SetGCPercent(400) // the heap is a few megabytes; collecting it for every hundred jobs is not worth it
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	// Caught and dropped rather than ignored: children would inherit that.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP, syscall.SIGPIPE)
	k, err := step.New(log, cfg)
	if err != nil {
		return err
	}
	return k.Run(ctx)
}
