package runs

import (
	"context"
	"encoding/json"
	"strings"
	"sync"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/dstack/config"
	"bireme.dev/bireme/internal/dstack/convert"
	"bireme.dev/bireme/internal/dstack/wire"
	"bireme.dev/bireme/internal/server/api/call"
	"bireme.dev/bireme/internal/server/api/view"
	"bireme.dev/bireme/internal/store"
)

// stored is a run's description, read.
type stored struct {
	spec *convert.Spec
	raw  json.RawMessage
}

// specCache keeps descriptions by their blob: a listing shows the same runs again and again.
type specCache struct {
	mu    sync.Mutex
	bySum map[core.Hash]stored
	bytes int
}

// maxCached bounds the bytes of JSON that are kept.
const maxCached = 32 << 20

func (s *specCache) get(h core.Hash) (stored, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x, ok := s.bySum[h]
	return x, ok
}

func (s *specCache) put(h core.Hash, x stored) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bySum == nil || s.bytes+len(x.raw) > maxCached {
		s.bySum, s.bytes = map[core.Hash]stored{}, 0
	}
	if _, twice := s.bySum[h]; !twice {
		s.bytes += len(x.raw)
	}
	s.bySum[h] = x
}

// spec reads the description of a run. What is private is left out for who is neither its user nor an administrator.
func (l *look) spec(ctx context.Context, r *core.Run, j *core.Job) (stored, error) {
	x, err := l.readSpec(ctx, r, j)
	if err != nil || l.v.OwnsSecrets(r.User) {
		return x, err
	}
	x.spec = x.spec.Public()
	x.raw, err = x.spec.JSON()
	return x, err
}

func (l *look) readSpec(ctx context.Context, r *core.Run, j *core.Job) (stored, error) {
	if r.Config.IsZero() {
		return describe(r, j)
	}
	if x, ok := l.a.specs.get(r.Config); ok {
		return x, nil
	}
	data, err := l.a.Store.Blob(ctx, r.Config)
	if err != nil {
		return stored{}, call.StoreError(err)
	}
	x := stored{raw: data}
	if r.Wire {
		x.spec, err = convert.Stored(data)
	} else {
		x, err = fromYAML(r, data)
	}
	if err != nil { // of another release, or of a file that is read otherwise now
		return describe(r, j)
	}
	l.a.specs.put(r.Config, x)
	return x, nil
}

// fromYAML makes the description of a run that a native command made of a file.
func fromYAML(r *core.Run, data []byte) (stored, error) {
	c, err := config.Read(data)
	if err != nil {
		return stored{}, err
	}
	return completed(&convert.Spec{RunName: &r.Name, Configuration: *c})
}

// describe makes a description of what is known of a job without one: it was submitted by another front end.
func describe(r *core.Run, j *core.Job) (stored, error) {
	return completed(convert.Described(r.Name, j))
}

func completed(s *convert.Spec) (stored, error) {
	eff, err := s.Effective(convert.Defaults{})
	if err != nil {
		eff = s.Completed()
	}
	raw, err := eff.JSON()
	return stored{spec: eff, raw: raw}, err
}

// job finds the job by which a run is judged, live or ended; nil: it was purged.
func (l *look) job(ctx context.Context, r *core.Run) (*core.Job, error) {
	if len(r.Jobs) == 0 {
		return nil, nil
	}
	if j := l.v.LiveRunJob(r); j != nil {
		return j, nil
	}
	if strings.HasPrefix(r.Name, slurmPrefix) && r.Config.IsZero() {
		return l.slurmRecord(ctx, r.Jobs[0])
	}
	list, err := l.a.Store.Jobs(ctx, store.JobQuery{IDs: []core.JobID{r.DecidingJob()}, Exact: true, Limit: 1})
	if err != nil {
		return nil, call.StoreError(err)
	}
	if len(list) == 0 {
		return nil, nil
	}
	return list[0], nil
}

// show is a run as clients see it.
func (l *look) show(ctx context.Context, r *core.Run) (*wire.Run, error) {
	j, err := l.job(ctx, r)
	if err != nil {
		return nil, err
	}
	return l.showWith(ctx, r, j)
}

func (l *look) showWith(ctx context.Context, r *core.Run, j *core.Job) (*wire.Run, error) {
	x, err := l.spec(ctx, r, j)
	if err != nil {
		return nil, err
	}
	shown := &convert.Shown{Run: r, Job: j, Spec: x.spec, Raw: x.raw, Begun: view.Begun(j)}
	if j != nil {
		shown.Waiting = l.waiting(j)
		shown.Launching = l.launching(j)
	}
	if r.Service != nil {
		l.replicas(shown)
	}
	return l.View.Run(shown), nil
}

// replicas adds the replicas of a service that there are.
func (l *look) replicas(shown *convert.Shown) {
	for _, x := range shown.Run.Service.Replicas {
		j, live := l.v.Job(x.Job)
		if !live {
			continue
		}
		r := convert.Replica{Replica: x, Job: j}
		r.Shown = convert.Shown{
			Run: shown.Run, Job: j, Spec: shown.Spec, Waiting: l.waiting(j), Launching: l.launching(j),
		}
		if l.a.Streaks != nil {
			r.Streaks = l.a.Streaks(j)
		}
		shown.Replicas = append(shown.Replicas, r)
	}
}

// launching says what is done on each of a job's nodes before it runs there.
func (l *look) launching(j *core.Job) func(rank int) convert.Launching {
	if j.State != core.Running || j.Alloc == nil {
		return nil
	}
	list := l.a.Jobs.Hub.Progress(j.ID)
	configuring := j.Flags.Has(core.Configuring)
	if len(list) == 0 && !configuring {
		return nil
	}
	return func(rank int) (out convert.Launching) {
		if configuring {
			out.Status = wire.JobProvisioning
		}
		for _, p := range list {
			if rank >= len(j.Alloc.Nodes) || j.Alloc.Nodes[rank].Node != p.Node {
				continue
			}
			if out.Status = wire.JobProvisioning; p.Pull != nil {
				out.Status = wire.JobPulling
				if p.Pull.Total > 0 {
					out.Pull = &wire.ImagePullProgress{
						DownloadedBytes: p.Pull.Downloaded, ExtractedBytes: p.Pull.Extracted, TotalBytes: p.Pull.Total,
						IsTotalBytesFinal: p.Pull.Final,
					}
				}
			}
		}
		return out
	}
}

// waiting tells in a few words why a job waits.
func (l *look) waiting(j *core.Job) string {
	plan := l.a.Engine.Plan()
	if j.State != core.Pending || plan == nil {
		return ""
	}
	switch code := plan.Reason(j).Code; code {
	case core.ReasonNone:
		return ""
	case core.ReasonPriority, core.ReasonResources:
		return "queued"
	default:
		return "queued (" + string(code) + ")"
	}
}
