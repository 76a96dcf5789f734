package runs

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/dstack/config"
	"bireme.dev/bireme/internal/dstack/convert"
	"bireme.dev/bireme/internal/dstack/wire"
	"bireme.dev/bireme/internal/engine"
	"bireme.dev/bireme/internal/engine/state"
	"bireme.dev/bireme/internal/server/api/call"
	"bireme.dev/bireme/internal/server/api/jobs"
	"bireme.dev/bireme/internal/server/dstackapi/front"
)

type applyBody struct {
	Plan  applyPlan `json:"plan" in:"required"`
	Force bool      `json:"force" in:"required"`
}

// applyPlan is a plan that comes back. Of the run that was there only its id matters.
type applyPlan struct {
	RunSpec         wire.RunSpec    `json:"run_spec" in:"required"`
	CurrentResource json.RawMessage `json:"current_resource"`
}

// noncePrefix marks the text by which a plan without a name is told from the next one. It travels in the key
// working_dir of the description, which means nothing to dstack.
const noncePrefix = "bireme:plan:"

func newNonce() *string {
	text := noncePrefix + call.NewID()
	return &text
}

func (a *Runs) apply(c *front.Call, in *applyBody) (any, error) {
	l := a.look(c)
	nonce := ""
	if w := in.Plan.RunSpec.WorkingDir; w != nil && strings.HasPrefix(*w, noncePrefix) {
		nonce = *w
		in.Plan.RunSpec.WorkingDir = nil
	}
	_, eff, err := l.readSubmitted(&in.Plan.RunSpec, false)
	if err != nil {
		return nil, err
	}
	currentID, err := currentOf(in.Plan.CurrentResource)
	if err != nil {
		return nil, err
	}
	name := eff.Name()
	if open, ok := c.Snap.Run(c.Project.Name, name); ok && name != "" && (currentID != "" || in.Force) {
		if !l.v.SeesRun(open) {
			return nil, front.ErrExists()
		}
		return l.update(open, eff, currentID, in.Force)
	}
	return l.create(eff, currentID, nonce)
}

// currentOf is the id of the run that a plan was made against.
func currentOf(raw json.RawMessage) (string, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return "", nil
	}
	var run struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal(raw, &run); err != nil {
		return "", front.Errorf("current_resource: %v", err)
	}
	return run.ID, nil
}

// update changes an open run in place.
func (l *look) update(open *core.Run, eff *convert.Spec, currentID string, force bool) (any, error) {
	ctx := l.c.Context()
	if wire.RunID(open.ID) != currentID && !force {
		return nil, front.Conflictf("Failed to apply plan: run %s was changed since the plan was made. "+
			"Try again or use force apply", open.Name)
	}
	stopping := open.Service != nil && open.Service.Stop != nil
	if j := l.v.LiveRunJob(open); stopping || open.Service == nil && j != nil && j.Stop != nil {
		return nil, front.Conflictf("Run %s is being stopped. Apply it again when it has ended", open.Name)
	}
	old, err := l.readSpec(ctx, open, nil) // all of it, also for a manager: nothing is lost that the manager does not see
	if err != nil {
		return nil, err
	}
	fields, inPlace := config.Changes(&old.spec.Configuration, &eff.Configuration)
	if !inPlace {
		return nil, front.Conflictf("Run %s is active and cannot change in place: %s. Stop it first", open.Name,
			strings.Join(fields, ", "))
	}
	if !sameExcept(old.spec, eff) {
		return nil, front.Conflictf("Run %s is active and its files, repository or profile cannot change in place. "+
			"Stop it first", open.Name)
	}
	raw, err := eff.JSON()
	if err != nil {
		return nil, err
	}
	inactivity := core.Seconds(0)
	if d := eff.Configuration.DevEnvironment; d != nil {
		inactivity = core.Seconds(max(0, config.Value(d.Inactivity)))
	}
	edit := &state.EditRun{
		By: l.c.Identity, Project: open.Project, Name: open.Name, ID: open.ID, Config: raw, Hash: l.a.Submissions.Hash(raw),
		Priority: int32(config.Value(eff.Configuration.Run().Priority)), Inactivity: inactivity, Service: eff.Service(),
	}
	if open.Service != nil && redeploys(fields) {
		f, err := l.submission(eff, open.Name, raw)
		if err != nil {
			return nil, err
		}
		if err := l.a.Submissions.Redeploy(l.c.R, l.c.Caller, f, edit); err != nil {
			return nil, err
		}
	}
	if err := l.a.Base.Keep(l.c.Caller, int64(len(raw))); err != nil {
		return nil, err
	}
	next, err := engine.Do(ctx, l.a.Engine, edit)
	if err != nil {
		l.a.Unkeep(l.c.Caller, int64(len(raw)))
		return nil, err
	}
	return l.again().show(ctx, next)
}

// redeploys reports whether a change of a service's properties needs other replicas.
func redeploys(fields []string) bool {
	return slices.ContainsFunc(fields, func(f string) bool {
		return !slices.Contains([]string{"priority", "replicas", "groups", "scaling", "gateway", "https"}, f)
	})
}

// again is the same look at the cluster as it is now.
func (l *look) again() *look {
	c := *l.c
	c.Snap = l.a.Engine.Snapshot()
	return l.a.look(&c)
}

// create submits a run. The same plan applied twice, because its answer was lost, makes one run: its key says so.
func (l *look) create(eff *convert.Spec, currentID, nonce string) (any, error) {
	c, ctx := l.c, l.c.Context()
	name, key := eff.Name(), ""
	if name == "" {
		if nonce == "" {
			nonce = *newNonce()
		}
		seed := sha256.Sum256([]byte(nonce))
		name = convert.Name(binary.BigEndian.Uint64(seed[:8]), func(n string) bool { return l.taken(ctx, n) })
		key = nonce
	}
	copied := *eff
	copied.RunName = &name
	raw, err := copied.JSON()
	if err != nil {
		return nil, err
	}
	if key == "" {
		if key, err = l.planKey(name, raw, currentID); err != nil {
			return nil, err
		}
	}
	f, err := l.submission(&copied, name, raw)
	if err != nil {
		return nil, err
	}
	f.Key = "dstack/" + string(c.Project.Name) + "/" + key
	done, err := l.a.Submissions.Take(c.R, c.Caller, f)
	if err != nil {
		return nil, err
	}
	fresh := l.again()
	j, err := fresh.job(ctx, &core.Run{Jobs: []core.JobID{done.ID}})
	if err != nil {
		return nil, err
	}
	if j == nil || j.Spec.Run == "" {
		return nil, core.Errorf(core.Unavailable, "run %s was submitted as job %d, and cannot be shown now", name, done.ID)
	}
	r, err := fresh.runOf(ctx, j)
	if err != nil {
		return nil, err
	}
	return fresh.showWith(ctx, r, j)
}

// taken reports whether a generated name would meet another run.
func (l *look) taken(ctx context.Context, name string) bool {
	r, err := l.newest(ctx, l.c.Project.Name, name)
	_, open := l.c.Snap.Run(l.c.Project.Name, name)
	return open || err == nil && r != nil
}

// runOf is the run of a job.
func (l *look) runOf(ctx context.Context, j *core.Job) (*core.Run, error) {
	id := j.ID
	if j.Array != nil {
		id = j.Array.Base
	}
	if r, ok := l.c.Snap.Run(j.Spec.Project, j.Spec.Run); ok && r.Jobs[0] == id {
		return r, nil
	}
	r, err := l.newest(ctx, j.Spec.Project, j.Spec.Run)
	if err == nil && (r == nil || r.Jobs[0] != id) {
		err = errNoRun()
	}
	return r, err
}

// planKey names a plan: what is applied, and what was there when it was made. A run that was deleted since is another
// beginning.
func (l *look) planKey(name string, raw []byte, currentID string) (string, error) {
	h := sha256.New()
	h.Write(raw)
	h.Write([]byte("\x00" + currentID))
	r, err := l.newest(l.c.Context(), l.c.Project.Name, name)
	if err != nil {
		return "", err
	}
	if r != nil && r.Deleted != 0 {
		h.Write([]byte("\x00" + r.ID))
	}
	return hex.EncodeToString(h.Sum(nil)[:16]), nil
}

// submission is the job of a run.
func (l *look) submission(s *convert.Spec, name string, raw []byte) (*jobs.Foreign, error) {
	ctx, at := l.c.Context(), l.places()
	sub, err := s.Submit(convert.Options{
		Name: name, Project: l.c.Project.Name, Runtime: l.runtime(), Now: time.Now(), Places: at,
		FailBusy: l.a.Settings().Dstack.FailBusy, Secret: l.secret, Images: l.Images,
		From: core.Origin{Command: config.Value(s.ConfigurationPath), Line: "dstack apply"},
		Job: func(run string) (string, error) {
			r, err := l.find(ctx, l.c.Project.Name, run)
			if err != nil {
				return "", front.Errorf("depends_on: there is no run %q in project %s", run, l.c.Project.Name)
			}
			return strconv.FormatInt(int64(r.Jobs[0]), 10), nil
		},
	})
	if err != nil {
		return nil, err
	}
	sub.Config, sub.RunSpec = string(raw), true
	if sub.Files, err = l.files(s, name); err != nil {
		return nil, err
	}
	f := &jobs.Foreign{Submit: *sub, FailUnfit: true}
	if l.v.SeesNodes() {
		f.Tried = s.Tried(at)
	}
	return f, nil
}

// secret checks that a secret of the project is there. Its value is put in where the job starts.
func (l *look) secret(name string) (string, error) {
	if _, ok := l.c.Snap.Credential(core.SecretCredential, string(l.c.Project.Name), name); !ok {
		return "", front.Errorf("There is no secret %q in project %s", name, l.c.Project.Name)
	}
	return "${{ secrets." + name + " }}", nil
}
