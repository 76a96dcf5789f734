package fleet

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"bireme.dev/bireme/internal/backend/ssh"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine"
	"bireme.dev/bireme/internal/engine/state"
)

// host is one host that is kept.
type host struct {
	f       *Fleets
	fleet   string
	num     int32
	node    core.NodeName
	ctx     context.Context
	stop    context.CancelFunc
	changed chan struct{} // its fleet did
	moved   chan struct{} // its node did
	again   chan struct{} // somebody wants it to be tried at once
	phase   atomic.Pointer[string]
	tried   core.FleetHost // how it was last tried to be reached
}

func (f *Fleets) newHost(ctx context.Context, fleet string, num int32, node core.NodeName) *host {
	h := &host{
		f: f, fleet: fleet, num: num, node: node, changed: make(chan struct{}, 1), moved: make(chan struct{}, 1),
		again: make(chan struct{}, 1),
	}
	h.ctx, h.stop = context.WithCancel(ctx)
	return h
}

func (h *host) say(phase string) { h.phase.Store(&phase) }

// spec is what the state says of the host now; nil: it is gone.
func (h *host) spec() (*core.Fleet, *core.FleetHost) {
	snap := h.f.engine.Snapshot()
	if snap == nil {
		return nil, nil
	}
	fl, ok := snap.Fleet(h.fleet)
	if !ok {
		return nil, nil
	}
	return fl, fl.Host(h.num)
}

// keep is the host's life.
func (h *host) keep() {
	defer h.stop()
	delay := h.f.cfg.Patience.Least
	h.await()
	left := 0
	for h.ctx.Err() == nil {
		fl, x := h.spec()
		if x == nil {
			return
		}
		var err error
		switch {
		case x.Leaving:
			left++
			if err = h.remove(fl, x); err == nil || left >= h.f.cfg.Patience.Leave || core.CodeOf(err) == core.Denied {
				news := &state.FleetNews{Gone: true}
				if err != nil {
					h.f.log.Warn("a host left its fleet with the agent's files on it", "fleet", fl.Name, "node", x.Node, "err", err)
					cause := "the agent and its files stay on the host: " + err.Error()
					news.Cause = &cause
				}
				h.tell(news)
				h.f.cfg.Drop(h.node)
				return
			}
		case h.well(fl, x):
			delay = h.f.cfg.Patience.Least
			if x.Cause != "" {
				h.tell(&state.FleetNews{Cause: new(string)})
			}
			h.say("")
			h.rest()
			continue
		default:
			err = h.raise(fl, x)
		}
		if err == nil || h.ctx.Err() != nil { // what comes next says when all is done
			delay = h.f.cfg.Patience.Least
			continue
		}
		cause := err.Error()
		h.f.log.Info("host", "fleet", fl.Name, "node", x.Node, "err", err)
		h.tell(&state.FleetNews{Cause: &cause})
		h.say("") // not before the cause is known: whoever watches would take it for done
		h.pause(delay)
		delay = min(2*delay, h.f.cfg.Patience.Most)
	}
}

// await gives an agent that was there before the server started time to connect by itself.
func (h *host) await() {
	_, x := h.spec()
	if x == nil || x.Leaving || x.Cert == "" || x.Cause != "" {
		return
	}
	ctx, cancel := context.WithTimeout(h.ctx, h.f.cfg.Patience.Return)
	defer cancel()
	h.until(ctx, func() bool { return h.f.cfg.Connected(h.node) })
}

// until waits for something that nobody tells of.
func (h *host) until(ctx context.Context, done func() bool) bool {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		case <-h.moved:
		}
	}
	return true
}

// well reports whether the host's agent is connected and as it should be.
func (h *host) well(fl *core.Fleet, x *core.FleetHost) bool {
	n, ok := h.f.engine.Snapshot().Node(h.node)
	return ok && h.f.cfg.Connected(h.node) && n.Host.Version == h.f.cfg.Version && x.Runs == Runs(fl, x)
}

// Runs names what a fleet says of how the agent of a host is run. What it was last started with is in the state, so
// that a server that died half-way knows what is left to do.
func Runs(fl *core.Fleet, x *core.FleetHost) string {
	return ssh.Sum([]byte(strings.Join([]string{addrOf(x), fl.Network, fl.Env.Sealed}, "\x00")))
}

// rest waits until something happens to the host or its node.
func (h *host) rest() {
	select {
	case <-h.ctx.Done():
	case <-h.changed:
	case <-h.moved:
	}
}

// pause waits before another try; a change of the fleet, or an agent that comes by itself, ends it.
func (h *host) pause(d time.Duration) {
	t := time.NewTimer(d + time.Duration(rand.Int64N(int64(d)/4+1)))
	defer t.Stop()
	for {
		select {
		case <-h.ctx.Done():
			return
		case <-t.C:
			return
		case <-h.again:
			return
		case <-h.moved:
			if fl, x := h.spec(); x == nil || h.well(fl, x) {
				return
			}
		case <-h.changed:
			// News of our own making changes the fleet too: only what somebody else wants counts.
			if _, x := h.spec(); x == nil || x.Leaving || !h.triedThis(x) {
				return
			}
		}
	}
}

// triedThis reports whether the host was last tried the way it is to be reached now.
func (h *host) triedThis(x *core.FleetHost) bool {
	t := &h.tried
	return x.Login == t.Login && x.Jump == t.Jump && (x.HostKey == t.HostKey || t.HostKey == "") &&
		(x.JumpKey == t.JumpKey || t.JumpKey == "")
}

// tell has the state take note of something found out.
func (h *host) tell(n *state.FleetNews) {
	n.Fleet, n.Num = h.fleet, h.num
	if _, err := engine.Urgent(context.WithoutCancel(h.ctx), h.f.engine, n); err != nil {
		h.f.log.Warn("news of a host were lost", "fleet", n.Fleet, "node", h.node, "err", err)
	}
}

// dial logs into the host and keeps the host keys it shows.
func (h *host) dial(ctx context.Context, fl *core.Fleet, x *core.FleetHost) (*ssh.Host, error) {
	t, err := h.target(fl, &x.Login, x.HostKey)
	if err != nil {
		return nil, err
	}
	if x.Jump.Host != "" {
		if t.Via, err = h.target(fl, &x.Jump, x.JumpKey); err != nil {
			return nil, err
		}
	}
	h.say("connecting")
	c, err := ssh.Dial(ctx, t)
	if err != nil {
		return nil, err
	}
	if c.Key != x.HostKey || c.ViaKey != x.JumpKey || c.Peer != x.Peer {
		h.tell(&state.FleetNews{HostKey: &c.Key, JumpKey: &c.ViaKey, Peer: &c.Peer})
	}
	if err := h.sole(c, x); err != nil && !x.Leaving {
		c.Close()
		return nil, err
	}
	return c, nil
}

// sole refuses a host that is there twice under different names: the one that is a node already stays, or the first in
// order.
func (h *host) sole(c *ssh.Host, x *core.FleetHost) error {
	snap := h.f.engine.Snapshot()
	if snap == nil || c.Peer == "" {
		return nil
	}
	for _, fl := range snap.Fleets() {
		for i := range fl.Hosts {
			o := &fl.Hosts[i]
			if o.Node == h.node || o.Peer != c.Peer || o.HostKey != c.Key {
				continue
			}
			stays := o.Cert != ""
			if stays == (x.Cert != "") {
				stays = cmp.Or(cmp.Compare(fl.Name, h.fleet), cmp.Compare(o.Num, h.num)) < 0
			}
			if stays {
				return core.Errorf(core.Conflict,
					"%s has address %s, as does %s of fleet %s: a host can be in one fleet only, and only once",
					x.Login.At(), c.Peer, o.Login.At(), fl.Name).Because("invalid_fleet")
			}
		}
	}
	return nil
}

func (h *host) target(fl *core.Fleet, l *core.SSHLogin, known string) (*ssh.Target, error) {
	for i := range fl.Keys {
		k := &fl.Keys[i]
		if k.Fingerprint != l.Key {
			continue
		}
		sealed, err := base64.StdEncoding.DecodeString(k.Sealed)
		if err != nil {
			return nil, fmt.Errorf("key %s: %w", k.Fingerprint, err)
		}
		plain, err := h.f.cfg.Authority.Unseal(KeyName(k.Fingerprint), sealed)
		if err != nil {
			return nil, err
		}
		signer, err := ssh.ParseKey(plain)
		if err != nil {
			return nil, err
		}
		return &ssh.Target{Login: *l, Key: signer, Known: known, Keys: h.f.cfg.HostKeys}, nil
	}
	return nil, core.Errorf(core.Internal, "fleet %s has no key %s", fl.Name, l.Key)
}

// env returns the variables of a fleet's agents.
func (f *Fleets) env(fl *core.Fleet) ([]string, error) {
	if fl.Env.Sealed == "" {
		return nil, nil
	}
	return OpenEnv(f.cfg.Authority, fl)
}

// place takes one of a number of places; give gives it back.
func place(ctx context.Context, c chan struct{}) (give func(), err error) {
	select {
	case c <- struct{}{}:
		return func() { <-c }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// remove ends the agent and takes away what was put on the host. One that was never logged into has nothing of ours.
func (h *host) remove(fl *core.Fleet, x *core.FleetHost) error {
	if x.HostKey == "" {
		return nil
	}
	give, err := place(h.ctx, h.f.connect)
	if err != nil {
		return err
	}
	defer give()
	c, err := h.dial(h.ctx, fl, x)
	if err != nil {
		return err
	}
	defer c.Close()
	h.say("removing")
	ctx, cancel := context.WithTimeoutCause(h.ctx, 2*time.Minute, errors.New("the agent's removal takes too long"))
	defer cancel()
	return c.Remove(ctx, x.Node)
}
