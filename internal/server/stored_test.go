package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/config"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/server/servertest"
)

// scriptOf is a held job with a script of about so many bytes that nobody else has.
func scriptOf(bytes, number int) client.Submit {
	return client.Submit{
		Spec:   core.Spec{Name: "test", Hold: true, IO: core.IO{WorkDir: "/", Stdout: "/dev/null"}},
		Script: fmt.Sprintf("#!/bin/sh\n#%d%s\n", number, strings.Repeat("x", bytes)),
	}
}

// What jobs bring stays for as long as their history, though they are canceled at once: a user may store so much in a
// day, and others are not held up by one who has.
func TestStoredBytesOfAUserAreBounded(t *testing.T) {
	t.Parallel()
	s := servertest.New(t)
	s.Cfg.Limits.StoredPerDay = config.Size(core.MiB)
	s.Start()
	bob := s.Token(core.User{Name: "bob", UnixName: "daemon"})
	submit := func(token string, in client.Submit) (int, *core.Error) {
		var made client.Submitted
		status, err := s.Call("POST", "/api/v1/jobs", token, in, &made)
		if status == http.StatusOK {
			s.Must("POST", "/api/v1/jobs/cancel", client.Cancel{IDs: []string{fmt.Sprint(made.ID)}}, nil)
		}
		return status, err
	}
	stored := 0
	for i := 1; ; i++ {
		status, err := submit(bob, scriptOf(100<<10, i))
		if status == http.StatusTooManyRequests && err.Reason == "limit_stored_per_day" &&
			strings.Contains(err.Message, "limits.stored_per_day") {
			break
		}
		if status != http.StatusOK || i > 11 {
			t.Fatalf("submission %d: %d %v", i, status, err)
		}
		stored++
	}
	if stored < 8 {
		t.Errorf("%d times 100 KiB were stored", stored)
	}
	if status, err := submit("", scriptOf(100<<10, 1)); status != http.StatusOK {
		t.Errorf("an administrator's submission: %d %v", status, err)
	}
	// What is refused, or was there already, costs nothing.
	ann := s.Token(core.User{Name: "ann", UnixName: "nobody"})
	bad := scriptOf(500<<10, 0)
	bad.Spec.Shape.NodesMin, bad.Spec.Shape.NodesMax, bad.Strict = 1000, 1000, true
	again := scriptOf(500<<10, 0)
	again.Key = "once"
	for range 4 {
		if status, _ := submit(ann, bad); status < 400 {
			t.Fatalf("more nodes than there are: %d", status)
		}
		if status, err := submit(ann, again); status != http.StatusOK {
			t.Fatalf("the same submission again: %d %v", status, err)
		}
	}
	if status, err := submit(ann, scriptOf(400<<10, 9)); status != http.StatusOK {
		t.Errorf("ann's second submission: %d %v", status, err)
	}
}

// On a disk that is nearly full what is left is for the state: users submit nothing, and their jobs can be ended.
func TestNearlyFullDiskTakesNoJobs(t *testing.T) {
	t.Parallel()
	s := servertest.New(t)
	s.Cfg.Limits.MinFreeDisk = config.Size(1 << 60)
	s.Start()
	bob := s.Token(core.User{Name: "bob", UnixName: "daemon"})
	status, err := s.Call("POST", "/api/v1/jobs", bob, scriptOf(1, 1), nil)
	if status != http.StatusServiceUnavailable || err.Reason != "disk_full" ||
		!strings.Contains(err.Message, "limits.min_free_disk") {
		t.Errorf("a user's submission: %d %v", status, err)
	}
	id := s.Submit(func(in *client.Submit) { in.Spec.Hold = true })
	s.Must("POST", "/api/v1/jobs/cancel", client.Cancel{IDs: []string{fmt.Sprint(id)}}, nil)
	s.AwaitState(id, core.Cancelled)
}
