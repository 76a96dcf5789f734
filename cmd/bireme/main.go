// Command bireme is the user's tool; under the name of a Slurm command it is that command.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"bireme.dev/bireme/internal/cli"
)

var version = "dev" // set by the linker

func main() { os.Exit(run(os.Args)) }

func run(argv []string) int {
	if len(argv) == 2 && argv[1] == "--version" { // asked for often by other programs: nothing else is set up for it
		fmt.Println("bireme", version)
		return 0
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	return cli.Real(version, nil).Run(ctx, argv[1:])
}
