// Command bireme-init is the first process of a container: it runs one command and ends with its status.
package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/initd"
)

var version = "dev" // set by the linker

const usage = `Usage: bireme-init [--env-fd N] [--] COMMAND [ARG...]

Runs COMMAND as the first process of a container and exits with its status, or
with 128 plus the number of the signal that ended it.

  --env-fd N   add to the environment what file descriptor N holds: KEY=VALUE
               entries separated by zero bytes; N is closed before COMMAND runs
  --version    print the version
  --help       print this

It hands HUP, INT, QUIT, TERM, USR1, USR2, ALRM, CONT and WINCH on to COMMAND
and reaps the processes that COMMAND leaves behind. It does not fetch files,
send logs or serve SSH: those come with the container runtime.

Exit status: COMMAND's; 2 usage; 125 the environment could not be read;
126 COMMAND could not be run; 127 COMMAND was not found.
`

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	envFD := -1
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		arg := args[0]
		args = args[1:]
		if arg == "--" {
			break
		}
		value, isEnv := strings.CutPrefix(arg, "--env-fd=")
		switch {
		case arg == "--help" || arg == "-h":
			fmt.Print(usage)
			return 0
		case arg == "--version":
			fmt.Println("bireme-init", version)
			return 0
		case arg == "--env-fd" && len(args) > 0:
			value, isEnv, args = args[0], true, args[1:]
		}
		fd, err := strconv.Atoi(value)
		if !isEnv || err != nil || fd < 3 {
			return fail(2, fmt.Errorf("%s: want --env-fd N with N from 3 on; see --help", arg))
		}
		envFD = fd
	}
	if len(args) == 0 {
		return fail(2, fmt.Errorf("no command; see --help"))
	}
	env := os.Environ()
	if envFD >= 0 {
		f := os.NewFile(uintptr(envFD), fmt.Sprintf("file descriptor %d", envFD))
		if f == nil {
			return fail(125, fmt.Errorf("file descriptor %d is not open", envFD))
		}
		more, err := initd.ReadEnv(f)
		f.Close()
		if err != nil {
			return fail(125, err)
		}
		env = lastWins(append(env, more...))
	}
	code, err := initd.Run(initd.Command{Argv: args, Env: env})
	if err != nil {
		return fail(code, err)
	}
	return code
}

// lastWins keeps the last entry of each name, so that what comes by the descriptor replaces what is there.
func lastWins(env []string) []string {
	at := map[string]int{}
	var out []string
	for _, kv := range env {
		name, _, _ := strings.Cut(kv, "=")
		if i, seen := at[name]; seen {
			out[i] = kv
			continue
		}
		at[name] = len(out)
		out = append(out, kv)
	}
	return out
}

func fail(code int, err error) int {
	fmt.Fprintln(os.Stderr, "bireme-init:", err)
	return code
}
