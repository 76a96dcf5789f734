// Command bireme-container is a container's stand-in among the processes of its node. The step keeper starts it.
package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"

	"bireme.dev/bireme/internal/agent/launcher"
	"bireme.dev/bireme/internal/agent/standin"
	"bireme.dev/bireme/internal/wire"
)

var version = "dev" // set by the linker

func main() {
	if len(os.Args) == 2 && os.Args[1] == "--version" {
		fmt.Println("bireme-container", version)
		return
	}
	host := len(os.Args) == 2 && os.Args[1] == "host"
	if len(os.Args) > 1 && !host {
		fmt.Fprintln(os.Stderr, "bireme-container: it takes no arguments: a step keeper gives it a launch on descriptor 3")
		os.Exit(2)
	}
	// There may be a hundred of us, each idle but at its beginning and its end.
	runtime.GOMAXPROCS(2)
	debug.SetMemoryLimit(16 << 20)
	code, err := run(host)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bireme-container:", err)
	}
	os.Exit(code)
}

// run is its life: in the place of a container of an engine, or until it becomes the program that makes one.
func run(host bool) (int, error) {
	feed := os.NewFile(3, "launch")
	f, err := wire.NewReader(feed).Next()
	if err != nil {
		return 1, fmt.Errorf("read the launch: %w", err)
	}
	l, err := wire.DecodeLaunch(f)
	switch {
	case err != nil:
		return 1, err
	case l.Container == nil:
		return 1, fmt.Errorf("the launch is not for a container")
	case !l.StandsIn():
		feed.Close() // its place is another's
		return 1, launcher.Main(l, os.Environ())
	}
	return standin.Main(l, feed, host)
}
