package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"bireme.dev/bireme/test/cluster"
)

// Tests are the tests of a package, a *testing.M.
type Tests interface{ Run() int }

// Main is the TestMain of a package whose tests share one engine. prepare imports the images of the tests and keeps
// the engine. It needs root and the built programs, and does not return.
func Main(m Tests, prepare func(*Engine) error) {
	code, err := run(m, prepare)
	if err != nil {
		fmt.Fprintln(os.Stderr, "container engine for tests:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m Tests, prepare func(*Engine) error) (code int, err error) {
	if os.Geteuid() != 0 {
		return 1, errors.New("needs root: it starts a container engine")
	}
	if _, err := cluster.Bin(); err != nil {
		return 1, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	e, err := Start(ctx)
	if err != nil {
		return 1, err
	}
	defer func() {
		if fault := e.Stop(); fault != nil && err == nil {
			code, err = 1, fault
		}
	}()
	if err := prepare(e); err != nil {
		return 1, err
	}
	return m.Run(), nil
}
