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
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
)

// Variables that make a process an attacker: the socket to attack, by what, and how often.
const (
	envSocket = "BIREME_FLOOD"
	envKind   = "BIREME_FLOOD_KIND"
	envCount  = "BIREME_FLOOD_COUNT"
)

// What an attacker says while it attacks: its attack is under way; it has sent as many as it was ordered.
const (
	saysFlooding = "flooding"
	saysSent     = "sent"
)

// Kinds of attack, each from a process of its own.
const (
	Requests    = "requests"
	Streams     = "streams"
	Tokens      = "tokens"
	Submissions = "submissions"
	Connections = "connections"
)

// Kinds are all of them. Streams come first: later they would be refused by the limit on requests, and few would open.
var Kinds = []string{Streams, Requests, Tokens, Submissions, Connections}

// Stats is what became of an attack.
type Stats struct {
	Sent, Served, Broken int64            // requests; broken ones got no answer
	Errors               int64            // answers of 500 and above, except for 503
	Open                 int64            // streams at the end
	Refused              map[string]int64 // by the reason that the answer gave
}

// Main attacks until it is told to stop (SIGTERM or SIGINT), prints its Stats and exits. Before, it prints a line with
// "flooding" when its attack is under way. It returns at once where the environment does not make this process an
// attacker.
func Main() {
	socket, kind := os.Getenv(envSocket), os.Getenv(envKind)
	if socket == "" {
		return
	}
	count, _ := strconv.Atoi(os.Getenv(envCount))
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	a := &attack{socket: socket, hc: clientOf(socket, kind == Connections), ready: 1}
	a.stats.Refused = map[string]int64{}
	a.run(ctx, kind, count)
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := json.NewEncoder(os.Stdout).Encode(a.stats); err != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

func clientOf(socket string, once bool) *http.Client {
	return &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", socket)
		},
		MaxIdleConnsPerHost: 1024, DisableKeepAlives: once,
	}}
}

type attack struct {
	socket string
	hc     *http.Client
	ready  int64 // answers after which the attack is under way

	mu    sync.Mutex
	seen  int64 // answers
	stats Stats
}

// MaxConnections is how many connections a user has to be allowed (limits.connections) for a whole flood: one that is
// refused at the socket would not reach what lies behind.
const MaxConnections = 2048

// Clients of each kind.
const (
	callers    = 8
	tokeners   = 2
	submitters = 500 // as many as wait for their refusals at once
	dialers    = 16
	lateComers = 4 // who open streams over the limit
)

func (a *attack) run(ctx context.Context, kind string, count int) {
	var wg sync.WaitGroup
	each := func(n int, f func(i int)) {
		for i := range n {
			wg.Go(func() {
				for ctx.Err() == nil {
					f(i)
				}
			})
		}
	}
	paths := []string{"jobs?view=brief", "jobs?history=1&run=nosuch", "nodes", "plan"}
	switch kind {
	case Requests:
		each(callers, func(i int) { a.call(ctx, "GET", paths[i%len(paths)], nil) })
	case Connections:
		each(dialers, func(int) { a.call(ctx, "GET", "nodes", nil) })
	case Tokens:
		each(tokeners, func(int) { a.token(ctx) })
	case Submissions:
		var begun, answered atomic.Int64
		lines := make([]line, submitters)
		bodies := [2][]byte{encoded(job(true)), encoded(job(false))}
		each(submitters, func(i int) {
			if begun.Add(1) > int64(count) {
				a.call(ctx, "POST", "jobs/cancel", client.Cancel{IDs: []string{"1", "2", "3"}})
				return
			}
			lines[i].call(ctx, a, "POST", "jobs", bodies[i%2])
			if answered.Add(1) == int64(count) {
				fmt.Println(saysSent)
			}
		})
	case Streams:
		a.ready = int64(count) // all are open or were refused
		each(count+lateComers, func(int) { a.watch(ctx) })
	}
	wg.Wait()
}

// job is one that waits until somebody removes it: it is held, or begins tomorrow. One that could start next would be a
// matter of priorities, not of the server.
func job(hold bool) *client.Submit {
	s := &client.Submit{Script: "#!/bin/sh\nexec sleep 1000\n", Env: []string{"PATH=/usr/bin:/bin"}}
	s.Spec.Name, s.Spec.Hold, s.Spec.Shape = "flood", hold, core.Shape{Tasks: 1}
	if !hold {
		s.Spec.Begin = core.At(time.Now().Add(24 * time.Hour))
	}
	s.Spec.IO = core.IO{WorkDir: "/tmp", Stdout: "/dev/null"}
	return s
}

// token makes one, and gives it another secret as often as that is allowed.
func (a *attack) token(ctx context.Context) {
	data, ok := a.call(ctx, "POST", "tokens", client.NewToken{Kind: "user"})
	var made client.NewTokenMade
	if !ok || json.Unmarshal(data, &made) != nil {
		return
	}
	for range 20 {
		a.call(ctx, "POST", "tokens/"+made.Token.ID+"/rotate", client.RotateToken{})
	}
	a.call(ctx, "DELETE", "tokens/"+made.Token.ID, nil)
}

// call sends one request and reads its answer.
func (a *attack) call(ctx context.Context, method, path string, body any) (answer []byte, taken bool) {
	resp := a.send(ctx, method, path, body)
	if resp == nil {
		return nil, false
	}
	defer resp.Body.Close()
	answer, _ = io.ReadAll(resp.Body)
	a.note(resp.StatusCode, answer)
	return answer, resp.StatusCode < 300
}

func (a *attack) send(ctx context.Context, method, path string, body any) *http.Response {
	data, err := json.Marshal(body)
	if err != nil {
		return nil
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://bireme/api/v1/"+path, bytes.NewReader(data))
	if err != nil {
		return nil
	}
	if body == nil {
		req.Body, req.GetBody, req.ContentLength = nil, nil, 0
	}
	resp, err := a.hc.Do(req)
	if err == nil {
		a.sent(false)
		return resp
	}
	if ctx.Err() == nil {
		a.sent(true)
	}
	return nil
}

// sent counts a request.
func (a *attack) sent(broken bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stats.Sent++
	if broken {
		a.stats.Broken++
	}
}

// note counts an answer. With the one that makes the attack complete it says so.
func (a *attack) note(status int, answer []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.seen++; a.seen == a.ready {
		fmt.Println(saysFlooding)
	}
	switch {
	case status >= 500 && status != http.StatusServiceUnavailable:
		a.stats.Errors++
	case status >= 300:
		var e client.ErrorBody
		if json.Unmarshal(answer, &e) != nil || e.Error.Reason == "" {
			e.Error.Reason = strconv.Itoa(status)
		}
		a.stats.Refused[e.Error.Reason]++
	default:
		a.stats.Served++
	}
}

// watch holds one stream open; where it is refused it is tried again by run.
func (a *attack) watch(ctx context.Context) {
	resp := a.send(ctx, "GET", "watch?after=0", nil)
	if resp == nil {
		return
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		answer, _ := io.ReadAll(resp.Body)
		a.note(resp.StatusCode, answer)
		return
	}
	a.note(resp.StatusCode, nil)
	a.open(1)
	_, _ = io.Copy(io.Discard, resp.Body)
	if ctx.Err() == nil { // the server ended it
		a.open(-1)
	}
}

func (a *attack) open(n int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stats.Open += n
}

// Yes is a script whose output goes to a file for as long as a flood may last. The file is cut again and again: the
// disk is not what is attacked.
func Yes(out string) string {
	return fmt.Sprintf("exec timeout 300 sh -c 'while :; do yes | head -c 10000000; : >%s; done'", out)
}

// YesRun is the configuration of a run that writes without end.
func YesRun(i int) string {
	return fmt.Sprintf("type: task\nname: yes%d\nruntime: process\nresources: {cpu: 1.., memory: 16MB..}\ncommands:\n"+
		"  - exec timeout 300 yes\n", i)
}
