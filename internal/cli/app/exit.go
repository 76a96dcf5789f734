package app

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
)

// The exit statuses of native commands; docs/manual/native.md promises them. An attached apply ends with its job's
// instead.
const (
	ExitOK          = 0
	ExitFailed      = 1
	ExitUsage       = 2 // wrong options, or a request that is wrong in itself
	ExitNotFound    = 3
	ExitDenied      = 4 // not allowed, or not known
	ExitUnavailable = 5 // the server is away or too busy
	ExitConflict    = 6 // does not fit the present state: no node could do it, the name is taken
	ExitInterrupted = 130
)

// usageError is a mistake on the command line.
type usageError struct{ msg string }

func (e *usageError) Error() string { return e.msg }

func Usagef(format string, args ...any) error { return &usageError{fmt.Sprintf(format, args...)} }

// IsUsage reports whether an error is a mistake on the command line.
func IsUsage(err error) bool {
	var usage *usageError
	return errors.As(err, &usage)
}

// StatusError ends the program with a status that is not ours, after everything has been said.
type StatusError struct{ Code int }

func (e *StatusError) Error() string { return fmt.Sprintf("exit status %d", e.Code) }

// ExitCode is the table from errors to statuses.
func ExitCode(err error) int {
	var usage *usageError
	var status *StatusError
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &status):
		return status.Code
	case errors.As(err, &usage):
		return ExitUsage
	case errors.Is(err, context.Canceled):
		return ExitInterrupted
	}
	switch core.ReasonOf(err) {
	case "node_config_unavailable", "memory_unsatisfiable", "too_many_nodes":
		// the request is sound; the cluster is too small for it
		return ExitConflict
	}
	switch core.CodeOf(err) {
	case core.Invalid, core.TooLarge:
		return ExitUsage
	case core.NotFound, core.Gone:
		return ExitNotFound
	case core.Denied, core.Unknown:
		return ExitDenied
	case core.Unavailable, core.Exhausted:
		return ExitUnavailable
	case core.Conflict:
		return ExitConflict
	case core.Internal:
	}
	return ExitFailed
}

// Message words an error for the user: what, where, and what would be right. A configuration's faults have a line each.
func Message(err error) string {
	text := err.Error()
	switch {
	case core.ReasonOf(err) == client.ReasonUnreachable:
		text += "; start a cluster with `biremed standalone`, or name one: BIREME_SERVER, or `bireme login`"
	case core.CodeOf(err) == core.Unknown:
		text += "; log in with `bireme login --server URL --token TOKEN`"
	}
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return "bireme: " + strings.Join(lines, "\nbireme: ")
}
