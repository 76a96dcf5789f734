package services

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/proxy"
)

// TestWanted: how many replicas a load asks for, within the range and after the delays.
func TestWanted(t *testing.T) {
	t.Parallel()
	const now = core.Time(1000 * 1e6)
	rps := &core.ServiceScaling{Metric: core.ScaleRPS, Target: 10, Window: 60, UpDelay: 30, DownDelay: 60}
	by := func(m core.ScalingMetric, target float64) *core.ServiceScaling {
		return &core.ServiceScaling{Metric: m, Target: target, Window: 60}
	}
	for name, tc := range map[string]struct {
		group core.ServiceGroup
		load  proxy.Load
		since core.Time
		want  int32
	}{
		"fixed":                {core.ServiceGroup{Min: 3, Max: 3, Want: 1}, proxy.Load{}, 0, 3},
		"up":                   {core.ServiceGroup{Min: 1, Max: 4, Want: 1, Scaling: rps}, proxy.Load{RPS: 21}, 0, 3},
		"up to the most":       {core.ServiceGroup{Min: 1, Max: 4, Want: 1, Scaling: rps}, proxy.Load{RPS: 1e9}, 0, 4},
		"too soon after start": {core.ServiceGroup{Min: 1, Max: 4, Want: 1, Scaling: rps}, proxy.Load{RPS: 21}, now, 1},
		"too soon after scaling": {
			core.ServiceGroup{Min: 1, Max: 4, Want: 3, Scaling: rps, Scaled: now.Add(-59 * time.Second)}, proxy.Load{}, 0, 3,
		},
		"down": {
			core.ServiceGroup{Min: 1, Max: 4, Want: 3, Scaling: rps, Scaled: now.Add(-60 * time.Second)}, proxy.Load{}, 0, 1,
		},
		"to none":                 {core.ServiceGroup{Max: 4, Want: 1, Scaling: rps}, proxy.Load{}, 0, 0},
		"to none under a request": {core.ServiceGroup{Max: 4, Want: 1, Scaling: rps}, proxy.Load{InFlight: 1}, 0, 1},
		"from none at once":       {core.ServiceGroup{Max: 4, Scaling: rps, Scaled: now}, proxy.Load{Waiting: 9}, now, 1},
		"none stays none":         {core.ServiceGroup{Max: 4, Scaling: rps}, proxy.Load{}, 0, 0},
		"queue": {
			core.ServiceGroup{Min: 1, Max: 9, Want: 1, Scaling: by(core.ScaleQueue, 2)}, proxy.Load{InFlight: 5}, 0, 3,
		},
		"slow": {
			core.ServiceGroup{Min: 1, Max: 9, Want: 2, Scaling: by(core.ScaleLatency, 1)}, proxy.Load{RPS: 1, P95: 2}, 0, 3,
		},
		"fast": {
			core.ServiceGroup{Min: 1, Max: 9, Want: 2, Scaling: by(core.ScaleLatency, 1)}, proxy.Load{RPS: 1, P95: .1}, 0, 1,
		},
	} {
		if got, why := wanted(&tc.group, tc.load, tc.since, now); got != tc.want {
			t.Errorf("%s: %d (%s), want %d", name, got, why, tc.want)
		}
	}
}

// TestLines: a connection is for who asked for it, under its token and from the node that was asked, once.
func TestLines(t *testing.T) {
	t.Parallel()
	l := NewLines()
	near, far := net.Pipe()
	defer far.Close()
	accept := func() (net.Conn, error) { return near, nil }
	c, err := l.Dial(context.Background(), "n1", func(token string) error {
		if err := l.Joined(token, "n2", "", accept); core.CodeOf(err) != core.Gone {
			t.Errorf("another node: %v", err)
		}
		err := l.Joined(token, "n1", "", accept)
		if again := l.Joined(token, "n1", "", accept); core.CodeOf(again) != core.Gone {
			t.Errorf("a second time: %v", again)
		}
		return err
	})
	if c != near || err != nil {
		t.Fatal(c, err)
	}
	_, err = l.Dial(context.Background(), "n1", func(token string) error {
		return l.Joined(token, "n1", "nothing listens", nil)
	})
	if err == nil || err.Error() != "nothing listens" {
		t.Fatal(err)
	}
	if _, err = l.Dial(context.Background(), "n1", func(string) error { return errors.New("away") }); err == nil {
		t.Fatal("a node that is away")
	}
	ctx, cancel := context.WithCancel(context.Background())
	if _, err = l.Dial(ctx, "n1", func(string) error { cancel(); return nil }); core.CodeOf(err) != core.Unavailable {
		t.Fatal(err)
	}
	if len(l.waiting) != 0 {
		t.Fatalf("%d are waited for", len(l.waiting))
	}
}
