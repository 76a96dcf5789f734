package server

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"slices"
	"strconv"
	"time"

	"golang.org/x/crypto/ssh"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/dstack/attach"
	"bireme.dev/bireme/internal/engine"
	"bireme.dev/bireme/internal/engine/state"
	"bireme.dev/bireme/internal/server/api/identity"
	"bireme.dev/bireme/internal/server/logstore"
	"bireme.dev/bireme/internal/server/sshdoor"
)

// sshHostKey makes the key by which clients know the SSH listener. It is derived from the authority's key, which lies
// sealed in the store, so every server of the cluster has the same.
func (s *server) sshHostKey() (ssh.Signer, error) {
	return ssh.NewSignerFromKey(ed25519.NewKeyFromSeed(s.authority.Secret("ssh host key")))
}

// openSSH opens the listener that leads into jobs, where the settings name one.
func (s *server) openSSH() error {
	cfg := &s.Config.SSH
	if cfg.Listen == "" {
		return nil
	}
	key, err := s.sshHostKey()
	if err != nil {
		return fmt.Errorf("host key of the SSH listener: %w", err)
	}
	if s.sshListener, err = net.Listen("tcp", cfg.Listen); err != nil {
		return core.Errorf(core.Unavailable, "the SSH listener: %v", err)
	}
	s.inside = newInside()
	jobs := into{s}
	s.ssh = sshdoor.New(sshdoor.Config{
		HostKey: key, Job: jobs.anyJob, Keys: jobs.jobKeys, Connect: s.inside.connect,
		LogOffset: jobs.logOffset, Audit: s.audit.Note, Log: s.Log,
		Hold: func(j *core.Job) bool { r := j.Spec.Rules(); return r != nil && r.Inactivity > 0 },
		Limits: func() sshdoor.Limits {
			return sshdoor.Limits{Connections: most(cfg.Connections), PerUser: most(cfg.ConnectionsPerUser)}
		},
	})
	s.follow("ssh", func(p *engine.Published) {
		c := p.Changes
		if p.Reloaded || len(c.Tokens)+len(c.GoneTokens)+len(c.Users)+len(c.GoneUsers)+len(c.Projects)+
			len(c.GoneProjects)+len(c.Credentials)+len(c.GoneCredentials) > 0 {
			s.ssh.Recheck()
		}
	})
	return nil
}

// into is what the SSH listener asks of the server about jobs.
type into struct{ *server }

// most is a limit of which 0 means none.
func most(n int64) int {
	if n == 0 {
		return math.MaxInt
	}
	return int(n)
}

// anyJob finds a job, live or ended.
func (s into) anyJob(ctx context.Context, id core.JobID) (*core.Job, error) {
	if j, ok := s.engine.Snapshot().Job(id); ok {
		return j, nil
	}
	j, err := s.endedJob(ctx, id)
	if j == nil && err == nil {
		err = core.Errorf(core.NotFound, "there is no job %d", id)
	}
	return j, err
}

// sshAddress is where clients reach the SSH listener that reach the API by a host name; without a port there is none.
func (s *server) sshAddress(host string) attach.Listener {
	if s.sshListener == nil {
		return attach.Listener{}
	}
	out := attach.Listener{Host: host, Proxy: s.Config.SSH.SSHProxy}
	if a := s.Config.SSH.Advertise; a != "" {
		h, port, err := net.SplitHostPort(a)
		if out.Port, _ = strconv.Atoi(port); err == nil { // the settings have been checked
			out.Host = h
		}
		return out
	}
	if t, ok := s.sshListener.Addr().(*net.TCPAddr); ok {
		out.Port = t.Port
	}
	return out
}

// inside is a listener for connections from within the server's own process.
type inside struct {
	conns chan net.Conn
	done  chan struct{}
}

func newInside() *inside { return &inside{conns: make(chan net.Conn), done: make(chan struct{})} }

func (l *inside) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// Close is called once, by the HTTP server.
func (l *inside) Close() error {
	close(l.done)
	return nil
}

func (l *inside) Addr() net.Addr { return &net.UnixAddr{Name: "inside", Net: "unix"} }

// connect opens a connection whose calls are those of a user, at an address.
func (l *inside) connect(user core.UserName, from net.Addr) (net.Conn, error) {
	near, far, err := sshdoor.Pipe()
	if err != nil {
		return nil, err
	}
	select {
	case l.conns <- &insideConn{far, user, from}:
		return near, nil
	case <-l.done:
		return nil, errors.Join(net.ErrClosed, near.Close(), far.Close())
	}
}

// insideConn is the server's end of such a connection.
type insideConn struct {
	net.Conn
	user core.UserName
	from net.Addr
}

func (c *insideConn) RemoteAddr() net.Addr { return c.from }

// jobKeys are the keys that open a job: those of its owner and of administrators, as the users' records have them at
// this moment, those of the owner's tokens, and the one that its run was submitted with, which stands for its owner.
func (s into) jobKeys(ctx context.Context, j *core.Job) ([]sshdoor.Key, error) {
	snap := s.engine.Snapshot()
	var out []sshdoor.Key
	add := func(user core.UserName, line string) {
		if key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(line)); err == nil { // it was checked when it was made
			out = append(out, sshdoor.Key{User: user, Key: key})
		}
	}
	owner := s.mayUse(snap, j)
	for _, u := range snap.Users() {
		if u.Disabled || (u.Name != j.Spec.User || !owner) && !s.api.AdminByRecord(u) {
			continue
		}
		if c, ok := snap.Credential(core.SSHKeyCredential, string(u.Name), ""); ok {
			add(u.Name, c.Info)
		}
		for _, c := range snap.CredentialsOf(core.PublicKeyCredential, string(u.Name)) {
			add(u.Name, c.Info)
		}
	}
	if owner {
		key, err := s.runKey(ctx, snap, j)
		if err != nil {
			return nil, err
		}
		add(j.Spec.User, key)
		for _, t := range snap.TokensOf(j.Spec.User) {
			if !steers(t, j.Spec.Project, core.At(time.Now())) {
				continue
			}
			if key, err := ssh.NewPublicKey(identity.KeyOf(s.authority, t).Public()); err == nil {
				out = append(out, sshdoor.Key{User: j.Spec.User, Key: key})
			}
		}
	}
	return out, nil
}

// steers reports whether a token is good for the jobs of its user in a project.
func steers(t *core.Token, p core.ProjectName, now core.Time) bool {
	return t.Kind == "user" && !t.Revoked && (t.Expires == 0 || now < t.Expires) && t.Has(core.ScopeSubmit) &&
		(t.Project == "" || t.Project == p)
}

// mayUse reports whether a job's owner may still use it: one who is not disabled and, where that decides who may run
// something, is a member of its project.
func (s into) mayUse(snap *state.Snapshot, j *core.Job) bool {
	u, ok := snap.User(j.Spec.User)
	if !ok || u.Disabled {
		return false
	}
	p, ok := snap.Project(j.Spec.Project)
	free := j.Spec.Run == "" && !s.api.Enforced().Associations
	return !ok || free || len(p.Members) == 0 || p.Member(u.Name).Role != core.RoleNone
}

// logOffset is where the output of an attempt from a time on begins.
func (s into) logOffset(_ context.Context, id core.JobID, attempt int32, from time.Time) (int64, error) {
	key := logstore.Key{Job: id, Attempt: attempt}
	_, end, err := s.logs.Range(key) // before the look, so that nothing is between the two
	if err != nil {
		return 0, err
	}
	list, _, err := s.logs.Page(key, logstore.PageQuery{From: -1, Since: from, Limit: 1})
	if err != nil || len(list) == 0 {
		return end, err
	}
	return list[0].Offset, nil
}

// runKey is the public key that a dstack client submitted a job's run with; empty: none. A run that has only its name
// from the job's, which has ended, may be another user's.
func (s into) runKey(ctx context.Context, snap *state.Snapshot, j *core.Job) (string, error) {
	if j.Spec.Run == "" {
		return "", nil
	}
	r, ok := snap.Run(j.Spec.Project, j.Spec.Run)
	if !ok || !r.Wire || r.Config.IsZero() || r.User != j.Spec.User || !isOf(j, r) {
		return "", nil
	}
	text, err := s.store.Blob(ctx, r.Config)
	if err != nil {
		return "", fmt.Errorf("configuration of run %s: %w", r.Name, err)
	}
	var spec struct {
		Key string `json:"ssh_key_pub"`
	}
	if err := json.Unmarshal(text, &spec); err != nil {
		return "", fmt.Errorf("configuration of run %s: %w", r.Name, err)
	}
	return spec.Key, nil
}

// isOf reports whether a job is one of a run's. Those of further groups follow the first, which the run names.
func isOf(j *core.Job, r *core.Run) bool {
	lead := j.ID
	if het := j.Spec.More().Het; het != nil {
		lead = het.Lead
	}
	return slices.Contains(r.Jobs, lead)
}
