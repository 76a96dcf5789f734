package flood

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
)

// Variables that make a process an attacker: the socket to attack, and how many jobs to submit and streams to open.
const (
	envSocket  = "BIREME_FLOOD"
	envJobs    = "BIREME_FLOOD_JOBS"
	envStreams = "BIREME_FLOOD_STREAMS"
)

// Env is the environment of an attacker.
func Env(socket string, jobs, streams int) []string {
	return []string{envSocket + "=" + socket, envJobs + "=" + strconv.Itoa(jobs), envStreams + "=" + strconv.Itoa(streams)}
}

// Stats is what became of an attack.
type Stats struct {
	Sent, Served, Refused, Broken int64 // requests; broken ones got no answer
	Errors                        int64 // answers of 500 and above, but for 503
	Streams                       int64 // that were open at once
	Jobs, Tokens                  int64 // that were taken
}

// Main attacks until it is told to stop (SIGTERM or SIGINT), prints its Stats and exits. It prints a line with "flooding" when it was refused something for the first time. It returns at once where the environment
// does not make this process an attacker.
func Main() {
	socket := os.Getenv(envSocket)
	if socket == "" {
		return
	}
	jobs, _ := strconv.Atoi(os.Getenv(envJobs))
	streams, _ := strconv.Atoi(os.Getenv(envStreams))
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	a := &attack{hc: clientOf(socket), jobs: int64(jobs)}
	a.run(ctx, streams)
	if err := json.NewEncoder(os.Stdout).Encode(a.stats()); err != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

func clientOf(socket string) *http.Client {
	return &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", socket)
		},
		MaxIdleConnsPerHost: 256,
	}}
}

type attack struct {
	hc   *http.Client
	jobs int64 // still to submit

	sent, served, refused, broken, errors, streams, taken, tokens atomic.Int64
}

func (a *attack) stats() Stats {
	return Stats{
		Sent: a.sent.Load(), Served: a.served.Load(), Refused: a.refused.Load(), Broken: a.broken.Load(), Errors: a.errors.Load(),
		Streams: a.streams.Load(), Jobs: a.taken.Load(), Tokens: a.tokens.Load(),
	}
}

// noteRefused counts a refusal. The first one says that the flood has reached a limit.
func (a *attack) noteRefused() {
	if a.refused.Add(1) == 1 {
		fmt.Println("flooding")
	}
}

// clients of each kind.
const clients = 32

func (a *attack) run(ctx context.Context, streams int) {
	var wg sync.WaitGroup
	each := func(n int, f func()) {
		for range n {
			wg.Go(func() {
				for ctx.Err() == nil {
					f()
				}
			})
		}
	}
	each(clients, func() { a.call(ctx, "GET", "/api/v1/jobs?view=brief", nil) })
	each(clients, func() { a.call(ctx, "GET", "/api/v1/jobs?history=1&run=nosuch", nil) })
	each(clients, func() { a.call(ctx, "GET", "/api/v1/nodes", nil) })
	each(4, func() {
		if a.call(ctx, "POST", "/api/v1/tokens", client.NewToken{Kind: "user"}) {
			a.tokens.Add(1)
		}
	})
	each(clients, func() {
		if atomic.AddInt64(&a.jobs, -1) < 0 {
			a.call(ctx, "POST", "/api/v1/jobs/cancel", client.Cancel{IDs: []string{"1", "2", "3"}})
			return
		}
		if a.call(ctx, "POST", "/api/v1/jobs", job()) {
			a.taken.Add(1)
		}
	})
	for range streams {
		wg.Go(func() { a.watch(ctx) })
	}
	wg.Wait()
}

// job is one that is held: it stays until somebody removes it.
func job() *client.Submit {
	s := &client.Submit{Script: "#!/bin/sh\nexec sleep 1000\n", Env: []string{"PATH=/usr/bin:/bin"}}
	s.Spec.Name, s.Spec.Hold, s.Spec.Shape = "flood", true, core.Shape{Tasks: 1}
	s.Spec.IO = core.IO{WorkDir: "/tmp", Stdout: "/dev/null"}
	return s
}

// call sends one request and reads its answer.
func (a *attack) call(ctx context.Context, method, path string, body any) (taken bool) {
	var r io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return false
		}
		r = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://bireme"+path, r)
	if err != nil {
		return false
	}
	a.sent.Add(1)
	resp, err := a.hc.Do(req)
	if err != nil {
		if ctx.Err() == nil {
			a.broken.Add(1)
		}
		return false
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusTooManyRequests:
		a.noteRefused()
	case resp.StatusCode >= 500 && resp.StatusCode != http.StatusServiceUnavailable:
		a.errors.Add(1)
	default:
		a.served.Add(1)
	}
	return resp.StatusCode < 300
}

// watch holds one stream open, and opens it again when it is refused or ends.
func (a *attack) watch(ctx context.Context) {
	for ctx.Err() == nil {
		req, err := http.NewRequestWithContext(ctx, "GET", "http://bireme/api/v1/watch?after=0", nil)
		if err != nil {
			return
		}
		a.sent.Add(1)
		resp, err := a.hc.Do(req)
		if err != nil {
			continue
		}
		if resp.StatusCode == http.StatusOK {
			a.streams.Add(1)
			_, _ = io.Copy(io.Discard, resp.Body)
		} else {
			a.noteRefused()
		}
		resp.Body.Close()
	}
}
