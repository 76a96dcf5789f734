package agent

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

	"bireme.dev/bireme/internal/agent/launcher"
	"bireme.dev/bireme/internal/agent/standin"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/wire"
)

// pendingEvery is how often stand-ins that have not started their container are looked at.
const pendingEvery = 500 * time.Millisecond

// expect has a launch watched until it runs.
func (c *containers) expect(k wire.Key) {
	c.mu.Lock()
	c.pending[k] = ""
	c.mu.Unlock()
	select {
	case c.watch <- struct{}{}:
	default:
	}
}

// tellPending tells the server what is done about launches that do not run yet. While there are none it rests.
func (c *containers) tellPending(ctx context.Context, l *ledger) error {
	for {
		c.mu.Lock()
		n := len(c.pending)
		c.mu.Unlock()
		if n == 0 {
			select {
			case <-ctx.Done():
				return nil
			case <-c.watch:
			}
		}
		t := time.NewTimer(pendingEvery)
		select {
		case <-ctx.Done():
			t.Stop()
			return nil
		case <-t.C:
		}
		for _, d := range c.lookPending() {
			l.tell(wire.TypeDoing, d)
		}
	}
}

// lookPending reads what the stand-ins say and gives what is new.
func (c *containers) lookPending() []wire.Doing {
	c.mu.Lock()
	keys := maps.Clone(c.pending)
	c.mu.Unlock()
	var news []wire.Doing
	for k, told := range keys {
		text, ok := c.doing(k)
		if !ok {
			continue // it has not said anything yet
		}
		c.mu.Lock()
		if _, still := c.pending[k]; still {
			if c.pending[k] = text; text == "" {
				delete(c.pending, k)
			}
		}
		c.mu.Unlock()
		if text != told || text == "" {
			d := wire.Doing{Key: k, Text: text, Ports: c.portsOf(k.String())}
			if strings.HasPrefix(text, launcher.Fetching) {
				d.Pull = c.pullOf(k)
			}
			news = append(news, d)
		}
	}
	return news
}

// doing is what a launch last said of itself.
func (c *containers) doing(k wire.Key) (string, bool) {
	if b, err := os.ReadFile(filepath.Join(standin.Folder(c.dir, k), "doing")); err == nil {
		return string(b), true
	}
	return c.makers.said(k, launcher.DoingFile)
}

// pullOf reads how far the image of a launch is; nothing but that it comes is known of those that makers fetch.
func (c *containers) pullOf(k wire.Key) *wire.Pull {
	p := new(wire.Pull)
	if b, err := os.ReadFile(filepath.Join(standin.Folder(c.dir, k), standin.PullFile)); err == nil {
		if json.Unmarshal(b, p) != nil {
			return new(wire.Pull)
		}
	}
	return p
}

// portsOf reads where the ports of a container are found.
func (c *containers) portsOf(key string) []core.Published {
	b, err := os.ReadFile(filepath.Join(c.dir, key, "ports"))
	if err != nil {
		return nil // most have none
	}
	var list []core.Published
	if err := json.Unmarshal(b, &list); err != nil {
		c.log.Warn("ports of a container", "key", key, "err", err)
	}
	return list
}

// retell tells a server that knows nothing yet where the ports of running containers are found.
func (c *containers) retell(l *ledger) {
	list, err := filepath.Glob(filepath.Join(c.dir, "*", "ports"))
	if err != nil || len(list) == 0 {
		return
	}
	run := map[string]wire.Key{}
	for _, k := range l.jobKeys() {
		for _, step := range []string{wire.BatchStep, wire.ExternStep} {
			k.Step = step
			run[k.String()] = k
		}
	}
	for _, path := range list {
		key := filepath.Base(filepath.Dir(path))
		if k, ok := run[key]; ok && c.alive(key) {
			l.tell(wire.TypeDoing, wire.Doing{Key: k, Ports: c.portsOf(key)})
		}
	}
}
