// Package display is --x11 for srun and salloc: it starts the process that carries X11 of a job's nodes to the caller's
// display, and says which variables tasks need.
package display

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"bireme.dev/bireme/internal/slurm/cmd"
)

// Variable has what Start returned, for the steps of an allocation that salloc made with --x11.
const Variable = "BIREME_X11"

// Exit is the exit status where there is no display, as Slurm's.
const Exit = 255

// Check says early what would fail later; which is the option's value, empty if it was not given.
func Check(w *cmd.World, which string) error {
	if which == "" {
		return nil
	}
	text, set := w.Lookup("DISPLAY")
	if !set {
		return errors.New("No DISPLAY variable set, cannot setup x11 forwarding.")
	}
	_, number, ok := strings.Cut(text, ":")
	if number = strings.TrimLeft(number[strings.LastIndexByte(number, ':')+1:], "0123456789"); !ok ||
		number != "" && number[0] != '.' {
		return errors.New("Error parsing DISPLAY environment variable. Cannot use X11 forwarding.")
	}
	return nil
}

// Start carries X11 of the nodes of a job that which names ("all", "first", "last") of how many it has. stop ends it.
func Start(w *cmd.World, job, which string, count int) (vars []string, stop func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	program := filepath.Join(filepath.Dir(self), "bireme")
	c := exec.Command(program, "x11-forward", job, numbers(which, count))
	c.Env, c.Stderr = w.Environ, w.Err
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // an interrupt on the terminal is for the command alone
	in, err := c.StdinPipe()
	if err != nil {
		return nil, nil, err
	}
	out, err := c.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	if err := c.Start(); err != nil {
		return nil, nil, err
	}
	stop = func() {
		_ = in.Close()
		_, _ = io.Copy(io.Discard, out)
		_ = c.Wait()
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if lines.Text() == "" {
			return vars, stop, nil
		}
		vars = append(vars, lines.Text())
	}
	stop()
	return nil, nil, errors.New("X11 forwarding failed")
}

// numbers are those of the nodes that are meant.
func numbers(which string, count int) string {
	switch which {
	case "first", "batch":
		return "0"
	case "last":
		return strconv.Itoa(count - 1)
	}
	list := make([]string, count)
	for i := range list {
		list[i] = strconv.Itoa(i)
	}
	return strings.Join(list, ",")
}

// Inherited are the variables of the allocation that this process is called in, nil if it has none.
func Inherited(w *cmd.World) []string {
	if v := w.Getenv(Variable); v != "" {
		return strings.Split(v, "\t")
	}
	return nil
}

// Pass is what makes others inherit variables.
func Pass(vars []string) string { return Variable + "=" + strings.Join(vars, "\t") }
