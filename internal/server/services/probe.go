package services

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/proxy"
)

// eager is how often a replica is probed that has not answered yet.
const eager = 250 * time.Millisecond

// prober finds out whether a replica is ready, in one attempt of its job.
type prober struct {
	dial   proxy.DialFunc
	probes []core.Probe
	news   func()
	cancel context.CancelFunc

	mu      sync.Mutex
	streaks []int32 // successes in a row, by probe
	ready   bool
	message string
}

func (p *prober) state() (ready bool, message string, streaks []int32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ready, p.message, append([]int32(nil), p.streaks...)
}

// run probes until ctx ends.
func (p *prober) run(ctx context.Context) {
	if len(p.probes) == 0 {
		p.listen(ctx)
		return
	}
	transport := &http.Transport{
		DialContext:       func(ctx context.Context, _, _ string) (net.Conn, error) { return p.dial(ctx) },
		DisableKeepAlives: true, MaxResponseHeaderBytes: 64 << 10, DisableCompression: true,
	}
	defer transport.CloseIdleConnections()
	var all sync.WaitGroup
	for i := range p.probes {
		all.Go(func() { p.repeat(ctx, i, transport) })
	}
	all.Wait()
}

// listen waits until the port takes a connection: a replica without probes is ready then.
func (p *prober) listen(ctx context.Context) {
	for {
		try, cancel := context.WithTimeout(ctx, 10*time.Second)
		c, err := p.dial(try)
		cancel()
		if err == nil {
			_ = c.Close()
		}
		if ctx.Err() != nil {
			return
		}
		p.note(0, err)
		if err == nil || !wait(ctx, eager) {
			return
		}
	}
}

// repeat makes one probe again and again.
func (p *prober) repeat(ctx context.Context, i int, transport *http.Transport) {
	probe := &p.probes[i]
	for {
		err := once(ctx, probe, transport)
		if ctx.Err() != nil {
			return
		}
		streak := p.note(i, err)
		if probe.UntilReady && streak >= probe.ReadyAfter {
			return
		}
		pause := probe.Interval.Duration()
		if streak == 0 && !p.wasReady() {
			pause = min(pause, eager)
		}
		if !wait(ctx, pause) {
			return
		}
	}
}

func (p *prober) wasReady() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ready
}

func wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// once makes a probe.
func once(ctx context.Context, probe *core.Probe, transport *http.Transport) error {
	ctx, cancel := context.WithTimeout(ctx, probe.Timeout.Duration())
	defer cancel()
	var body io.Reader
	if probe.Body != "" {
		body = strings.NewReader(probe.Body)
	}
	name := probe.Method + " " + probe.URL
	req, err := http.NewRequestWithContext(ctx, probe.Method, "http://replica"+probe.URL, body)
	if err != nil {
		return fmt.Errorf("probe %s: %w", name, err)
	}
	for _, h := range probe.Headers {
		if strings.EqualFold(h.Name, "Host") {
			req.Host = h.Value
			continue
		}
		req.Header.Add(h.Name, h.Value)
	}
	resp, err := transport.RoundTrip(req)
	switch {
	case err != nil && ctx.Err() != nil:
		return fmt.Errorf("probe %s: no answer within %v", name, probe.Timeout.Duration())
	case err != nil:
		return fmt.Errorf("probe %s: %w", name, err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return fmt.Errorf("probe %s: answered %d", name, resp.StatusCode)
	}
	return nil
}

// note takes the result of a probe, and gives its successes in a row.
func (p *prober) note(i int, err error) (streak int32) {
	p.mu.Lock()
	was, said := p.ready, p.message
	if err != nil {
		p.streaks[i], p.message = 0, clip(err.Error())
	} else {
		p.streaks[i] = min(p.streaks[i]+1, 1<<20)
	}
	p.ready = true
	for k, n := range p.streaks {
		need := int32(1)
		if k < len(p.probes) {
			need = p.probes[k].ReadyAfter
		}
		p.ready = p.ready && n >= need
	}
	if p.ready {
		p.message = ""
	}
	streak = p.streaks[i]
	changed := was != p.ready || said != p.message
	p.mu.Unlock()
	if changed {
		p.news()
	}
	return streak
}

func clip(s string) string {
	if len(s) > 300 {
		return s[:300]
	}
	return s
}
