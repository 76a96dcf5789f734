package standin

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/wire"
)

// awaitTimeout is how long a container's stand-in may take to begin. Once it has, it is waited for however long the
// image takes.
const awaitTimeout = 30 * time.Second

// await dials the stand-in of a container once that runs. A step may be here before it: they are launched one after the
// other.
func await(folder string, job core.JobID, signals <-chan os.Signal) (*wire.PassConn, error) {
	deadline := time.Now().Add(awaitTimeout)
	for {
		c, err := dialJoin(folder)
		if err == nil {
			return wire.NewPassConn(c), nil
		}
		switch e, _ := ReadEnd(folder); {
		case e != nil && e.Message != "":
			return nil, fmt.Errorf("the container of job %d: %s", job, e.Message)
		case e != nil:
			return nil, fmt.Errorf("the container of job %d has ended", job)
		case time.Now().After(deadline):
			return nil, fmt.Errorf("the container of job %d does not run here: %w", job, err)
		}
		t := time.NewTimer(20 * time.Millisecond)
		select {
		case <-t.C:
		case sig := <-signals:
			t.Stop()
			switch sig.(syscall.Signal) {
			case unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT:
				return nil, fmt.Errorf("ended while it waited for the container of job %d", job)
			}
		}
	}
}

func dialJoin(folder string) (*net.UnixConn, error) {
	d, err := os.Open(folder)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return net.DialUnix("unix", nil, &net.UnixAddr{Name: instanceOf(d, "join"), Net: "unix"})
}

// lastWords is why a container is gone that a step had joined, or was about to.
func lastWords(folder string) error {
	for range 50 { // its stand-in closes its doors, then writes
		if e, _ := ReadEnd(folder); e != nil {
			if e.Message != "" {
				return errors.New(e.Message)
			}
			break
		}
		t := time.NewTimer(20 * time.Millisecond)
		<-t.C
	}
	return errors.New("the container ended")
}
