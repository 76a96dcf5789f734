//go:build !linux

package cmd

import "io"

// Terminal is the caller's terminal while a task has it. Here there is never one.
type Terminal struct{}

// RawTerminal finds no terminal.
func RawTerminal(io.Reader) *Terminal { return nil }

// Restore does nothing.
func (t *Terminal) Restore() {}

// Size is not known.
func (t *Terminal) Size() (rows, cols uint16, ok bool) { return 0, 0, false }
