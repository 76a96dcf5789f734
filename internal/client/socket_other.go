//go:build !linux

package client

import (
	"context"
	"io"
)

func (s *socketTrip) dialPlain(ctx context.Context) (conn io.ReadWriteCloser, cut func(), err error) {
	return s.dial(ctx)
}
