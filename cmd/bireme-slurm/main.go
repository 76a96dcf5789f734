// Command bireme-slurm is the Slurm commands alone, under the names of links that lead to it. `bireme` can do what they
// do as well; this starts sooner, because it links nothing of the rest.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/slurm/multicall"
)

func main() {
	grow(len(os.Args) & 1)
	args := client.HideArguments()
	if code, ok := multicall.Main(filepath.Base(args[0]), args[1:]); ok {
		os.Exit(code)
	}
	fmt.Fprintf(os.Stderr, "%s: call it by a link with the name of a Slurm command, as `bireme links DIR` makes "+
		"them: %s\n", os.Args[0], strings.Join(multicall.Names(), ", "))
	os.Exit(1)
}

// grow makes room on the stack at once, while there is little on it to move: by doubling on the way it is moved three
// times, which is a thirtieth of what sbatch takes.
//
//go:noinline
func grow(i int) byte {
	var room [24 << 10]byte
	return room[i]
}
