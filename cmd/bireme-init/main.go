// Command bireme-init is the first process of a container.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"bireme.dev/bireme/internal/initd"
)

var version = "dev" // set by the linker

const usage = `Usage: bireme-init serve SOCKET
       bireme-init sshd | job-sshd
       bireme-init --version | --help

serve   the first process of a container: dials SOCKET, runs what comes from
        there, hands signals on, reaps, and ends with the first program
sshd    serves SSH on its standard input and output to whoever has those
job-sshd  serves SSH to the other containers of its job; serve starts it
limit   sets limits and becomes a program; serve starts it

Called as ssh it is a client for those.

Exit status: the program's, or 128 plus the number of the signal that ended it;
2 usage; 126 the program could not be run; 127 it was not found; 137 whoever had
the container made is gone.
`

func main() {
	if filepath.Base(os.Args[0]) == "ssh" {
		os.Exit(initd.SSHCommand(os.Args[1:]))
	}
	os.Exit(run(os.Args[1:]))
}

func run(args []string) int {
	switch {
	case len(args) == 2 && args[0] == "serve":
		code, err := initd.Serve(args[1])
		if err != nil {
			fmt.Fprintln(os.Stderr, "bireme-init:", err)
		}
		return code
	case len(args) == 1 && args[0] == "sshd":
		if err := initd.SSH(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "bireme-init:", err)
			return 1
		}
		return 0
	case len(args) == 1 && args[0] == "job-sshd":
		fmt.Fprintln(os.Stderr, "bireme-init:", initd.JobSSH(os.Stdin)) // it ends with its listener
		return 1
	case len(args) > 1 && args[0] == "limit":
		fmt.Fprintln(os.Stderr, "bireme-init:", initd.Limit(args[1:]))
		return initd.ExitCannotRun
	case len(args) == 1 && args[0] == "--version":
		fmt.Println("bireme-init", version)
		return 0
	case len(args) == 1 && (args[0] == "--help" || args[0] == "-h"):
		fmt.Print(usage)
		return 0
	}
	fmt.Fprint(os.Stderr, usage)
	return 2
}
