package engine

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/store"
)

// fakestore keeps everything in memory and fails as it is told. What it has "on disk" survives an engine, as a database
// does.
type fakestore struct {
	store.Store // methods the engine never calls

	mu       sync.Mutex
	epoch    int64
	holder   string
	expires  time.Time
	seq      int64
	next     core.JobID
	nextNode int64
	lastIDs  core.LastIDs
	now      core.Time
	jobs     map[core.JobID]*core.Job
	steps    map[[2]int64]*core.Step
	nodes    map[core.NodeName]*core.Node
	users    map[core.UserName]*core.User
	projects map[core.ProjectName]*core.Project

	qos          map[core.QOSName]*core.QOS
	reservations map[string]*core.AdvanceReservation
	fleets       map[string]*core.Fleet
	credentials  map[core.CredentialKey]*core.Credential
	volumes      map[core.VolumeKey]*core.Volume
	keys         []core.SubmitKey

	commits, loads int
	delay          time.Duration // of each commit; for tests in a bubble
	gate           chan struct{} // if set, each commit takes one from it first
	full           bool          // no room for anything
	cut            string        // a holder who does not reach the store
	ahead          time.Duration // its clock, of the engine's
	// fate tells what becomes of commit number n: whether it is written, and what the caller is told.
	fate func(n int) (written bool, err error)
}

func newFakestore() *fakestore {
	return &fakestore{
		jobs: map[core.JobID]*core.Job{}, steps: map[[2]int64]*core.Step{},
		nodes: map[core.NodeName]*core.Node{},
		users: map[core.UserName]*core.User{}, projects: map[core.ProjectName]*core.Project{},
		qos: map[core.QOSName]*core.QOS{}, reservations: map[string]*core.AdvanceReservation{},
		fleets: map[string]*core.Fleet{}, credentials: map[core.CredentialKey]*core.Credential{},
		volumes: map[core.VolumeKey]*core.Volume{},
	}
}

func (f *fakestore) Lead(ctx context.Context, holder string, ttl time.Duration, renew int64, _ core.Time) (int64,
	error,
) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.cut == holder { // it is not heard, and hears nothing
		f.mu.Unlock()
		<-ctx.Done()
		f.mu.Lock()
		return 0, ctx.Err()
	}
	switch {
	case renew != 0 && renew != f.epoch:
		return 0, store.ErrStale
	case renew != 0:
	case f.holder != "" && f.holder != holder && time.Now().Before(f.expires):
		return 0, store.ErrHeld
	default:
		f.epoch++
		f.holder = holder
	}
	f.expires = time.Now().Add(ttl)
	return f.epoch, nil
}

func (f *fakestore) Leader(context.Context) (store.Leader, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return store.Leader{
		Holder: f.holder, Epoch: f.epoch, Seq: f.seq, Left: time.Until(f.expires), Now: core.At(time.Now().Add(f.ahead)),
	}, nil
}

func (f *fakestore) Probe(_ context.Context, epoch int64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if epoch != f.epoch {
		return store.ErrStale
	}
	if f.full {
		return store.ErrFull
	}
	return nil
}

func (f *fakestore) Load(context.Context) (*store.Image, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.loads++
	img := &store.Image{
		Seq: f.seq, NextJob: f.next, NextNode: f.nextNode, LastIDs: f.lastIDs, Now: f.now, Keys: slices.Clone(f.keys),
	}
	for _, j := range f.jobs {
		if j.Live() {
			img.Jobs = append(img.Jobs, j)
		}
	}
	slices.SortFunc(img.Jobs, func(a, b *core.Job) int { return cmp.Compare(a.ID, b.ID) })
	for _, s := range f.steps {
		img.Steps = append(img.Steps, s)
	}
	for _, n := range f.nodes {
		img.Nodes = append(img.Nodes, n)
	}
	for _, u := range f.users {
		img.Users = append(img.Users, u)
	}
	for _, p := range f.projects {
		img.Projects = append(img.Projects, p)
	}
	for _, q := range f.qos {
		img.QOS = append(img.QOS, q)
	}
	for _, r := range f.reservations {
		img.Reservations = append(img.Reservations, r)
	}
	for _, x := range f.fleets {
		img.Fleets = append(img.Fleets, x)
	}
	for _, x := range f.volumes {
		img.Volumes = append(img.Volumes, x)
	}
	for _, x := range f.credentials {
		img.Credentials = append(img.Credentials, x)
	}
	return img, nil
}

var errAway = errors.New("fakestore: connection lost")

func (f *fakestore) Commit(ctx context.Context, epoch int64, c *core.Changes) error {
	if f.gate != nil {
		select {
		case <-f.gate:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if f.delay > 0 {
		time.Sleep(f.delay) // in a bubble: nobody waits
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if epoch != f.epoch {
		return store.ErrStale
	}
	if f.full {
		return store.ErrFull
	}
	f.commits++
	written, err := true, error(nil)
	if f.fate != nil {
		written, err = f.fate(f.commits)
	}
	if written {
		if len(c.Events) > 0 && c.Events[0].Seq != f.seq+1 {
			return errors.New("fakestore: events do not follow the last one")
		}
		f.write(c)
	}
	return err
}

func (f *fakestore) write(c *core.Changes) {
	f.seq += int64(len(c.Events))
	f.next, f.nextNode, f.now = c.NextJob, c.NextNode, c.Now
	if c.LastIDs != nil {
		f.lastIDs = *c.LastIDs
	}
	for _, j := range c.Jobs {
		f.jobs[j.ID] = j
	}
	for _, s := range c.Steps {
		f.steps[[2]int64{int64(s.Job), int64(s.ID)}] = s
	}
	for _, n := range c.Nodes {
		f.nodes[n.Name] = n
	}
	for _, n := range c.GoneUsers {
		delete(f.users, n)
	}
	for _, u := range c.Users {
		f.users[u.Name] = u
	}
	for _, n := range c.GoneProjects {
		delete(f.projects, n)
	}
	for _, n := range c.GoneQOS {
		delete(f.qos, n)
	}
	for _, n := range c.GoneReservations {
		delete(f.reservations, n)
	}
	for _, n := range c.GoneFleets {
		delete(f.fleets, n)
	}
	for _, x := range c.Fleets {
		f.fleets[x.Name] = x
	}
	for _, k := range c.GoneVolumes {
		delete(f.volumes, k)
	}
	for _, x := range c.Volumes {
		f.volumes[x.Key()] = x
	}
	for _, k := range c.GoneCredentials {
		delete(f.credentials, k)
	}
	for _, x := range c.Credentials {
		f.credentials[x.Key()] = x
	}
	for _, p := range c.Projects {
		f.projects[p.Name] = p
	}
	for _, q := range c.QOS {
		f.qos[q.Name] = q
	}
	for _, r := range c.Reservations {
		f.reservations[r.Name] = r
	}
	f.keys = append(f.keys, c.Keys...)
}

func (f *fakestore) Purge(context.Context, int64, store.Retention, core.Time) (int, bool, error) {
	return 0, false, nil
}

// set changes how it behaves.
func (f *fakestore) set(change func(*fakestore)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

// job reads what is on disk.
func (f *fakestore) job(id core.JobID) *core.Job {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.jobs[id]
}

func (f *fakestore) count() (jobs, commits, loads int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.jobs), f.commits, f.loads
}
