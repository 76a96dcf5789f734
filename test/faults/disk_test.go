//go:build e2e

package faults

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/test/cluster"
)

// A full disk makes the server read-only: nothing acknowledged is lost, what ends meanwhile is recorded when there is
// room.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	disk, err := os.MkdirTemp("/tmp", "bt-disk-")
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=40m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(syscall.Unmount(disk, 0), os.Remove(disk)); err != nil {
			t.Error(err)
		}
	})
	ballast := fill(t, disk, "ballast", 32<<20)
	b := newBench(t, cluster.Options{Store: "sqlite:" + filepath.Join(disk, "bireme.db")})
	ends := &order{name: "ends", sleep: 2 * time.Second, code: 8}
	stays := &order{name: "stays", sleep: time.Minute}
	endsID, staysID := b.submit(ends), b.submit(stays)
	b.started(ends, 1)
	b.started(stays, 1)

	known := submitUntilRefused(b)
	t.Logf("%d jobs were acknowledged before the disk was full", len(known))
	// What is left goes as well, so that not even a small record fits.
	rest := fill(t, disk, "rest", 1<<40)
	b.Eventually("the server says why nothing can be written", func() (bool, string) {
		s, err := b.Client(0).Cluster(t.Context())
		if err != nil {
			return false, err.Error()
		}
		return s.ReadOnly != "", "writable"
	})
	b.ended(ends)
	b.Eventually("a submission is refused for now", func() (bool, string) {
		_, err := b.Client(0).Submit(t.Context(), bulky("late"))
		return core.CodeOf(err) == core.Unavailable, fmt.Sprint(err)
	})
	if list, err := b.Client(0).Jobs(t.Context(), client.JobsQuery{IDs: []string{staysID}}); err != nil ||
		len(list.Jobs) != 1 {
		t.Errorf("reading from a read-only server: %v", err)
	}
	cancelled := make(chan error, 1)
	go func() {
		_, err := b.Client(time.Minute).Cancel(t.Context(), &client.Cancel{IDs: []string{staysID}})
		cancelled <- err
	}()
	pause(t.Context(), 500*time.Millisecond) // the disk stays full for a while
	for _, name := range []string{ballast, rest} {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-cancelled; err != nil {
		t.Errorf("a cancel that was tried until there was room: %v", err)
	}
	wantEnd(t, b.WaitEnd(endsID), core.Failed, core.Exit{Code: 8}, 1)
	if j := b.WaitEnd(staysID); j.State != core.Cancelled {
		t.Errorf("the cancelled job ended %v", j.State)
	}
	after := &order{name: "after"}
	wantEnd(t, b.WaitEnd(b.submit(after)), core.Completed, core.Exit{}, 1)
	for _, id := range known {
		if j, err := b.Client(time.Second).Job(t.Context(), fmt.Sprint(id)); err != nil || len(j.Jobs) != 1 {
			t.Errorf("job %d was acknowledged and is lost: %v", id, err)
		}
	}
	b.KillServer()
	if err := b.Up(); err != nil {
		t.Fatal(err)
	}
	for _, id := range known {
		if j, err := b.Client(time.Second).Job(t.Context(), fmt.Sprint(id)); err != nil || len(j.Jobs) != 1 {
			t.Errorf("job %d was acknowledged and is lost after a restart: %v", id, err)
		}
	}
	// A cluster whose disk is full can be stopped.
	fill(t, disk, "full again", 1<<40)
	began := time.Now()
	if err := b.Stop(); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("stopping took %v", took)
	}
}

// bulky is a job that waits and whose script is large and like no other.
func bulky(name string) *client.Submit {
	src := rand.NewChaCha8([32]byte{byte(rand.Uint32()), byte(rand.Uint32()), byte(rand.Uint32()), byte(rand.Uint32())})
	noise := make([]byte, 128<<10)
	_, _ = src.Read(noise) // never fails
	return &client.Submit{
		Script: "#!/bin/sh\n: " + fmt.Sprintf("%x", noise) + "\n", Key: client.NewKey(),
		Spec: core.Spec{
			Name: name, Hold: true, IO: core.IO{WorkDir: "/"},
			Shape: core.Shape{NodesMin: 1, NodesMax: 1, MemPerNode: core.MiB},
		},
	}
}

// submitUntilRefused submits large jobs until there is no room, and gives those that were acknowledged.
func submitUntilRefused(b *bench) []core.JobID {
	b.t.Helper()
	var known []core.JobID
	ctx, cancel := context.WithTimeout(b.t.Context(), 30*time.Second)
	defer cancel()
	for ctx.Err() == nil {
		done, err := b.Client(0).Submit(ctx, bulky("bulky"))
		switch core.CodeOf(err) {
		case "":
			known = append(known, done.ID)
		case core.Unavailable:
			if strings.Contains(err.Error(), "cannot be reached") {
				b.t.Fatal(err)
			}
			return known
		default:
			b.t.Fatalf("with a disk that fills up: %v", err)
		}
	}
	b.t.Fatal("a disk of 8 MiB took everything")
	return nil
}

// fill takes room in a directory's file system: so many bytes, or all there is.
func fill(t *testing.T, dir, file string, most int) string {
	t.Helper()
	name := filepath.Join(dir, file)
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for size := 1 << 20; size > 0 && most > 0; size /= 2 {
		chunk := bytes.Repeat([]byte{'x'}, size)
		for most >= size {
			if _, err := f.Write(chunk); err != nil {
				if !errors.Is(err, syscall.ENOSPC) {
					t.Fatal(err)
				}
				break
			}
			most -= size
		}
	}
	return name
}
