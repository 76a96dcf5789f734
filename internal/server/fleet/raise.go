package fleet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"time"

	"bireme.dev/bireme/internal/backend/ssh"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state"
	"bireme.dev/bireme/internal/server/ca"
)

// installWait bounds one visit to a host.
const installWait = 10 * time.Minute

// raise makes a node of the host. It returns when the agent is connected by itself, or when the SSH connection that
// carries its stream has ended or is not wanted any more.
func (h *host) raise(fl *core.Fleet, x *core.FleetHost) error {
	h.tried = *x
	h.say("queued")
	give, err := place(h.ctx, h.f.connect)
	if err != nil {
		return err
	}
	ctx, stopped := h.visit(fl, x)
	c, err := h.dial(ctx, fl, x)
	if err != nil {
		give()
		return stopped(err)
	}
	defer c.Close()
	tunnel, err := h.install(ctx, c, fl, x)
	give()
	if tunnel != nil {
		defer tunnel.Close()
	}
	if err = stopped(err); err != nil || !h.wanted(fl, x) {
		return err
	}
	if tunnel == nil || tunnel.Active() == 0 { // it has come by itself
		return h.sameVersion(x)
	}
	if x.Cause != "" {
		h.tell(&state.FleetNews{Cause: new(string)})
	}
	h.say("")
	return h.hold(c, fl, x)
}

// sameVersion reports whether what was brought is what this server is of. Trying again would bring the same.
func (h *host) sameVersion(x *core.FleetHost) error {
	n, ok := h.f.engine.Snapshot().Node(h.node)
	if !ok || n.Host.Version == h.f.cfg.Version {
		return nil
	}
	return core.Errorf(core.Conflict,
		"%s: its agent has version %s, this server %s: the server's programs were replaced while it ran; restart it",
		x.Login.At(), n.Host.Version, h.f.cfg.Version)
}

// errUnwanted ends a visit to a host of which something else is wanted now.
var errUnwanted = errors.New("the fleet was changed")

// visit bounds the time spent on a host, and ends it when its fleet wants something else of it. The function it gives
// ends the watch; a visit that was cut short did not fail.
func (h *host) visit(fl *core.Fleet, x *core.FleetHost) (context.Context, func(error) error) {
	ctx, cancel := context.WithCancelCause(h.ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-ctx.Done():
				return
			case <-h.changed:
				if !h.wanted(fl, x) {
					cancel(errUnwanted)
					return
				}
			}
		}
	}()
	return ctx, func(err error) error {
		cut := errors.Is(context.Cause(ctx), errUnwanted)
		cancel(nil)
		<-done
		if cut {
			return nil
		}
		return err
	}
}

// wanted reports whether a host is still wanted the way it was.
func (h *host) wanted(fl *core.Fleet, x *core.FleetHost) bool {
	of, now := h.spec()
	return now != nil && !now.Leaving && now.Login == x.Login && now.Jump == x.Jump && Runs(of, now) == Runs(fl, x)
}

// hold keeps the connection that carries the agent's stream.
func (h *host) hold(c *ssh.Host, fl *core.Fleet, x *core.FleetHost) error {
	for {
		select {
		case <-h.ctx.Done():
			return nil
		case <-c.Gone():
			return core.Errorf(core.Unavailable, "%s: the SSH connection broke", x.Login.At())
		case <-h.moved:
			if n, ok := h.f.engine.Snapshot().Node(h.node); ok && n.Flags.Has(core.NodeSilent) && !h.f.cfg.Connected(h.node) {
				return nil // nobody is at the other end any more: whoever keeps the agent going may be gone, too
			}
		case <-h.changed:
			if !h.wanted(fl, x) {
				return nil
			}
		}
	}
}

// install brings the host's agent up to date and waits until it is connected.
func (h *host) install(ctx context.Context, c *ssh.Host, fl *core.Fleet, x *core.FleetHost) (_ *ssh.Tunnel, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, installWait, errors.New("the installation takes too long"))
	defer cancel()
	h.say("looking")
	facts, bundle, err := h.look(ctx, c)
	if err != nil {
		return nil, err
	}
	if facts.CA != "" && !h.f.cfg.Authority.Knows(facts.CA) {
		return nil, core.Errorf(core.Conflict, "%s: %s/%s belongs to another cluster; delete it there first",
			x.Login.At(), facts.Base, h.node)
	}
	if !facts.Programs {
		if err := h.bring(ctx, c, facts, bundle); err != nil {
			return nil, err
		}
	}
	a := &ssh.Agent{Node: h.node, Programs: bundle.Sum, Base: facts.Base, CA: h.f.cfg.Authority.PEM()}
	if x.Cert == "" || facts.Cert != x.Cert {
		made, err := h.f.cfg.Authority.Issue(ca.Node{Name: h.node, Roles: core.Compute})
		if err != nil {
			return nil, err
		}
		a.Key, a.Cert = made.Key, made.Cert
		sum := ssh.Sum(a.Cert)
		h.tell(&state.FleetNews{Cert: &sum, Key: made.Sum, Ends: core.At(made.Ends)})
	}
	addr, err := addrIn(fl, x, facts)
	if err != nil {
		return nil, err
	}
	if a.Env, err = h.f.env(fl); err != nil {
		return nil, err
	}
	a.Args = h.args(fl, addr, x, a)
	tunnel, tunnelErr := c.Listen(a.Socket())
	if tunnelErr == nil {
		go func() { _ = h.f.cfg.Serve(tunnel) }() // it ends when the tunnel is closed, with its end for an error
		defer func() {
			if err != nil {
				tunnel.Close()
			}
		}()
	}
	var before core.Time
	if n, ok := h.f.engine.Snapshot().Node(h.node); ok {
		before = n.Host.AgentStart
	}
	started := !a.Same(facts)
	if started {
		h.say("starting")
		if err := c.Start(ctx, a); err != nil {
			return tunnel, err
		}
	}
	h.say("waiting for its agent")
	wait, cancel := context.WithTimeout(ctx, h.f.cfg.Patience.Connect)
	defer cancel()
	if h.until(wait, func() bool {
		n, ok := h.f.engine.Snapshot().Node(h.node)
		return ok && h.f.cfg.Connected(h.node) && (!started || n.Host.AgentStart != before)
	}) {
		if now := Runs(fl, x); x.Runs != now {
			h.tell(&state.FleetNews{Runs: &now})
		}
		return tunnel, nil
	}
	if ctx.Err() != nil {
		return tunnel, context.Cause(ctx)
	}
	why := fmt.Sprintf("%s: the agent was started and does not connect: %s", x.Login.At(), c.Log(ctx, h.node))
	if tunnelErr != nil {
		why += "; " + tunnelErr.Error()
	}
	return tunnel, core.Errorf(core.Unavailable, "%s", why)
}

// look probes the host and finds the programs for its kind of machine.
func (h *host) look(ctx context.Context, c *ssh.Host) (*ssh.Facts, *ssh.Bundle, error) {
	bundle, err := h.f.cfg.Bundles.For(runtime.GOARCH)
	if err != nil {
		return nil, nil, err
	}
	facts, err := c.Probe(ctx, h.node, bundle.Sum)
	if err != nil || facts.Arch == runtime.GOARCH {
		return facts, bundle, err
	}
	if bundle, err = h.f.cfg.Bundles.For(facts.Arch); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", c.At(), err)
	}
	facts, err = c.Probe(ctx, h.node, bundle.Sum)
	return facts, bundle, err
}

// bring uploads the programs. Hosts that share a directory need them once: while this one waited its turn, another may
// have been brought them.
func (h *host) bring(ctx context.Context, c *ssh.Host, facts *ssh.Facts, b *ssh.Bundle) error {
	h.say("waiting to upload")
	give, err := place(ctx, h.f.upload)
	if err != nil {
		return err
	}
	defer give()
	now, err := c.Probe(ctx, h.node, b.Sum)
	if err != nil || now.Programs {
		return err
	}
	h.say("uploading")
	return c.Upload(ctx, h.node, facts, b)
}

// args are those of the agent: whom it dials, the tunnel's end last.
func (h *host) args(fl *core.Fleet, addr string, x *core.FleetHost, a *ssh.Agent) []string {
	var servers []string
	for _, s := range h.f.cfg.Servers {
		if !loopback(s) || loopback(x.Login.At()) { // ours is not the host's
			servers = append(servers, s)
		}
	}
	servers = append(servers, "unix:"+a.Socket())
	return []string{
		"--node", string(h.node), "--fleet", fl.Name, "--features", fl.Name, "--addr", addr, "--server",
		strings.Join(servers, ","),
	}
}

// addrOf is where other nodes reach the host.
func addrOf(x *core.FleetHost) string {
	if x.Addr != "" {
		return x.Addr
	}
	return x.Login.Host
}

// addrIn is where other nodes reach the host that has shown its addresses.
func addrIn(fl *core.Fleet, x *core.FleetHost, facts *ssh.Facts) (string, error) {
	if fl.Network == "" || x.Addr != "" {
		return addrOf(x), nil
	}
	within, err := core.PrivateNetwork(fl.Network)
	if err != nil {
		return "", err
	}
	var found []netip.Addr
	for _, ip := range facts.Addrs {
		if within.Contains(ip) {
			found = append(found, ip)
		}
	}
	if len(found) == 0 {
		return "", core.Errorf(core.Invalid, "%s: has no address in the fleet's network %s", x.Login.At(),
			fl.Network).Because("host_unsuitable")
	}
	return slices.MinFunc(found, netip.Addr.Compare).String(), nil
}

func loopback(at string) bool {
	at = strings.TrimPrefix(at, "https://")
	name, _, err := net.SplitHostPort(at)
	if err != nil {
		name = at
	}
	ip := net.ParseIP(name)
	return name == "localhost" || ip != nil && ip.IsLoopback()
}
