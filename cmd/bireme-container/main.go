// Command bireme-container is a container's stand-in among the processes of its node. The step keeper starts it.
package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"

	"bireme.dev/bireme/internal/agent/standin"
)

var version = "dev" // set by the linker

func main() {
	if len(os.Args) == 2 && os.Args[1] == "--version" {
		fmt.Println("bireme-container", version)
		return
	}
	if len(os.Args) > 1 {
		fmt.Fprintln(os.Stderr, "bireme-container: it takes no arguments: a step keeper gives it a launch on descriptor 3")
		os.Exit(2)
	}
	// There may be a hundred of us, each idle but at its beginning and its end.
	runtime.GOMAXPROCS(2)
	debug.SetMemoryLimit(16 << 20)
	code, err := standin.Main(os.NewFile(3, "launch"))
	if err != nil {
		fmt.Fprintln(os.Stderr, "bireme-container:", err)
	}
	os.Exit(code)
}
