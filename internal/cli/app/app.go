// Package app is what all native commands share: their streams, clock, connection and terminal (App), questions,
// tables, the wording of numbers and times, and the exit statuses.
package app

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/grammar"
	"bireme.dev/bireme/internal/core/plain"
)

// App is what the commands touch of the world.
type App struct {
	In       io.Reader
	Out, Err io.Writer
	Terminal bool // In is a terminal: questions can be asked
	Connect  func() (*client.Client, error)
	Now      func() time.Time
	Lookup   func(name string) (string, bool) // the caller's environment
	// Interrupts tells of Ctrl-C from the call on, until stop is called; nil: there is none.
	Interrupts func() (c <-chan os.Signal, stop func())

	// Dstack: the program was called as dstack. Its statuses are then dstack's, and the plan is a part of the output.
	Dstack bool

	interrupted bool // a question was answered by Ctrl-C
}

// Interrupted reports whether a question was answered by Ctrl-C.
func (a *App) Interrupted() bool { return a.interrupted }

// ConnectAdmin connects for what only administrators may do: the words after "only administrators".
func (a *App) ConnectAdmin(ctx context.Context, what string) (*client.Client, *client.Whoami, error) {
	c, err := a.Connect()
	if err != nil {
		return nil, nil, err
	}
	me, err := c.Whoami(ctx)
	if err == nil && !me.Admin {
		err = core.Errorf(core.Denied, "only administrators %s", what)
	}
	return c, me, err
}

// NoSuchCommand is the Args of commands that only hold others.
func NoSuchCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := "; see `" + cmd.CommandPath() + " --help`"
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		hint = "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return fmt.Errorf("there is no command %q%s", cmd.CommandPath()+" "+args[0], hint)
}

// OneFlag refuses two flags that contradict each other.
func OneFlag(cmd *cobra.Command, a, b string) error {
	if cmd.Flags().Changed(a) && cmd.Flags().Changed(b) {
		return Usagef("%s: --%s and --%s cannot be used together", strings.TrimPrefix(cmd.CommandPath(), "bireme "), a, b)
	}
	return nil
}

// Project returns the project to act in: the flag's, that of the settings, or the one the server takes for the
// caller's.
func Project(ctx context.Context, c *client.Client, flag string) (string, error) {
	if flag != "" {
		return flag, nil
	}
	if p := c.Settings().Project; p != "" {
		return p, nil
	}
	me, err := c.Whoami(ctx)
	if err != nil {
		return "", err
	}
	return string(me.Project), nil
}

// PrintJSON writes v for programs.
func (a *App) PrintJSON(v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return err
	}
	_, err := a.Out.Write(plain.JSON(b.Bytes()))
	return err
}

// Note tells the user something that is not the result.
func (a *App) Note(format string, args ...any) {
	fmt.Fprintln(a.Err, plain.Message(fmt.Sprintf(format, args...)))
}

// Confirm asks a question. Without a terminal there is nobody to ask, and whoever typed the command meant it.
func (a *App) Confirm(yes bool, format string, args ...any) bool {
	if yes || !a.Terminal {
		return true
	}
	return a.Ask(format, args...)
}

// Declined is the end of a command whose question was answered with no: nothing failed.
func (a *App) Declined(what string) error {
	if a.Dstack {
		_, err := fmt.Fprintln(a.Out, "Exiting...")
		return err
	}
	a.Note("%s", what)
	return nil
}

// Ask asks on the terminal; anything but y or yes means no. Ctrl-C ends the program, also where it was typed before:
// whatever else waits for it is past.
func (a *App) Ask(format string, args ...any) bool {
	if a.interrupted {
		return false
	}
	var interrupts <-chan os.Signal
	if a.Interrupts != nil {
		c, stop := a.Interrupts()
		defer stop()
		interrupts = c
	}
	fmt.Fprint(a.Err, plain.Message(fmt.Sprintf(format, args...))+" [y/N] ")
	answer := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(a.In).ReadString('\n')
		answer <- line
	}()
	select {
	case line := <-answer:
		switch strings.ToLower(strings.TrimSpace(line)) {
		case "y", "yes":
			return true
		}
	case <-interrupts:
		fmt.Fprintln(a.Err)
		a.interrupted = true
	}
	return false
}

// Wait blocks for d, or until ctx ends.
func Wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// ReadFile reads a file that the user named; - is standard input.
func (a *App) ReadFile(name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(a.In)
	}
	data, err := os.ReadFile(name)
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return nil, Usagef("%s: %s", name, pe.Err)
	}
	return data, err
}

// Name is what the program was called as.
func (a *App) Name() string {
	if a.Dstack {
		return "dstack"
	}
	return "bireme"
}

// Since reads a time that lies back: a duration before now such as 10m, or a moment in RFC 3339 with its zone.
func Since(text string, now time.Time) (time.Time, error) {
	if t, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return t, nil
	}
	s, err := grammar.ParseDuration(text)
	if err != nil || s < 0 {
		return time.Time{}, Usagef("--since %s: expected a duration such as 10m, or a time such as "+
			"2026-01-31T12:00:00Z", text)
	}
	return now.Add(-time.Duration(s) * time.Second), nil
}
