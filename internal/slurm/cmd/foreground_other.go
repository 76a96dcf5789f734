//go:build !linux

package cmd

import (
	"context"
	"io"
)

// InBackground reports whether a read of in would stop this process.
func InBackground(io.Reader) bool { return false }

// AwaitForeground returns when in may be read.
func AwaitForeground(context.Context, io.Reader) {}
