// Command bireme is the user's tool; under the name of a Slurm command it is that command.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"bireme.dev/bireme/internal/cli"
	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/slurm/multicall"
	"bireme.dev/bireme/internal/slurm/x11"
)

// dstackName is the name under which this program takes the options of dstack's CLI.
const dstackName = "dstack"

var version = "dev" // set by the linker

func main() { os.Exit(run(client.HideArguments())) }

// run decides which command this is before anything is set up: a link's name, then `bireme NAME` for machines without
// links, then the native commands.
func run(argv []string) int {
	if code, ok := multicall.Main(filepath.Base(argv[0]), argv[1:]); ok {
		return code
	}
	if len(argv) > 1 {
		if argv[1] == "--version" && filepath.Base(argv[0]) != dstackName {
			fmt.Println("bireme", version)
			return 0
		}
		if argv[1] == x11.Command {
			return x11.Main(argv[2:])
		}
		if code, ok := multicall.Main(argv[1], argv[2:]); ok {
			return code
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	program := cli.Real(version, multicall.Names(), multicall.Pages)
	args := argv[1:]
	switch {
	case filepath.Base(argv[0]) == dstackName:
		program.Dstack = true
	case len(args) > 0 && args[0] == dstackName:
		program.Dstack, args = true, args[1:]
	}
	return program.Run(ctx, args)
}
