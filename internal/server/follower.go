package server

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/server/api"
	"bireme.dev/bireme/internal/server/hub"
	"bireme.dev/bireme/internal/server/pass"
	"bireme.dev/bireme/internal/server/stream"
	"bireme.dev/bireme/internal/server/trigger"
	"bireme.dev/bireme/internal/server/vault"
)

// follower is what a server answers with while another one leads: its copy of the state, and a way to the leader.
type follower struct {
	*server
	serving errgroup.Group
}

// open opens the doors of a server that follows, with the parts that do not change with the role.
func (f *follower) open(ctx context.Context, s *server) error {
	f.server = &server{
		Options: s.Options, holder: s.holder, store: s.store, engine: s.engine, logs: s.logs, samples: s.samples,
		uploads: s.uploads, streams: stream.New(stream.Patience{}), ports: s.ports, members: s.members, began: s.began,
	}
	f.live.Store(s.live.Load())
	if err := f.openSeals(ctx); err != nil {
		return err
	}
	if err := writeFile(f.Config.CAFile(), f.authority.PEM()); err != nil {
		return err
	}
	var err error
	if f.doors, err = f.openDoors(); err != nil {
		return err
	}
	cfg := f.Config
	f.hub = hub.New(hub.Config{
		Cluster: cfg.Cluster, Version: f.Version, SilentAfter: cfg.Timers.SilentAfter.D(),
	}, f.engine, f.store.Blob, f.logs, f.Log)
	if f.fleets, err = f.newFleets(); err != nil {
		return err
	}
	f.triggers = trigger.New(f.engine, f.store, f.triggerConfig, f.Log)
	passer := pass.New(pass.Config{
		Leader: f.members.Leader, Cert: (&between{f: f.server}).conf, Log: f.Log,
		Wrote: func(r *http.Request, seq int64) { f.api.Wrote(r, seq) },
	})
	f.api = api.New(api.Deps{
		Config: cfg, Version: f.Version, Engine: f.engine, Store: f.store, Hub: f.hub, Streams: f.streams, Logs: f.logs,
		Samples: f.samples, Authority: f.authority, Servers: f.agentServers(), Fleets: f.fleets, Triggers: f.triggers,
		Log: f.Log, Conns: &f.conns, Vault: vault.New(f.seals), Uploads: f.uploads, Dstack: f.door("dstack").url(),
		SSH: f.sshAddress, HashKey: f.authority.Secret("blob hashes"), Pass: passer, Members: f.members.list,
		StepDown: f.engine.StepDown,
	})
	for _, d := range append(f.doors, f.tunnels) {
		d.http.Handler = f.api
	}
	for _, d := range f.doors {
		f.serving.Go(d.serve)
	}
	f.members.takeTerm(f.server)
	return nil
}

// leave gives the doors back; calls under way are finished meanwhile, those that wait for a leader by the next one.
func (f *follower) leave() {
	for _, d := range f.doors {
		_ = d.l.Close() // it stays open for others
	}
	f.api.Close()
	f.streams.Close()
}

// finish waits for the calls under way.
func (f *follower) finish() {
	ctx, cancel := context.WithTimeout(context.Background(), f.Config.Timers.Grace.D()+5*time.Second)
	defer cancel()
	for _, d := range f.doors {
		f.serving.Go(func() error { return d.shutdown(ctx) })
	}
	if err := f.serving.Wait(); err != nil && !errors.Is(err, net.ErrClosed) {
		f.Log.Debug("calls were cut when this server stopped following", "err", err)
	}
}

// between makes the settings of connections to other servers.
type between struct {
	f *server

	mu   sync.Mutex
	made time.Time
	tls  *tls.Config
}

func (b *between) conf() (*tls.Config, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.tls != nil && time.Since(b.made) < b.f.Config.Certificates.Server.D()/3 {
		return b.tls, nil
	}
	cert, err := b.f.authority.Between()
	if err != nil {
		return nil, err
	}
	b.made = time.Now()
	b.tls = &tls.Config{
		MinVersion: tls.VersionTLS13, RootCAs: b.f.authority.Pool(), Certificates: []tls.Certificate{cert},
		NextProtos: []string{"http/1.1"},
	}
	return b.tls, nil
}

// awaitLead serves what a server that follows can until the engine leads. It returns nil then, and what has to be
// waited for once the doors are another's.
func (f *follower) awaitLead(ctx context.Context, s *server, ended chan error) (after func(), err error) {
	after = func() {}
	following := s.engine.Copy.Following()
	done := func() {
		if f.server == nil {
			return
		}
		f.leave()
		after = f.finish
	}
	for {
		select {
		case <-s.engine.Leading():
			done()
			return after, nil
		case err := <-ended:
			ended <- err
			done()
			return after, errEngineEnded
		case <-ctx.Done():
			done()
			return after, ctx.Err()
		case <-following:
			following = nil
			if err = f.open(ctx, s); err != nil {
				f.server = nil
				s.Log.Warn("this server follows, and answers nobody", "err", err)
				continue
			}
			if s.Ready != nil {
				s.Ready(f.info())
			}
		}
	}
}

var errEngineEnded = core.Errorf(core.Unavailable, "the engine has ended")
