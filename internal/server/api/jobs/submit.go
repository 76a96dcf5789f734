package jobs

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"bireme.dev/bireme/internal/account"
	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/jsontext"
	"bireme.dev/bireme/internal/dstack/secrets"
	"bireme.dev/bireme/internal/engine"
	"bireme.dev/bireme/internal/engine/state"
	"bireme.dev/bireme/internal/server/api/call"
	"bireme.dev/bireme/internal/server/hub"
	"bireme.dev/bireme/internal/server/jobsubmit"
	"bireme.dev/bireme/internal/store"
	"bireme.dev/bireme/internal/wire/parcel"
)

// Submissions takes jobs in, and tries them.
type Submissions struct {
	*call.Base
	Jobs      *Jobs
	Hub       *hub.Hub
	HashKey   []byte // see Deps
	Submitted prometheus.Counter
	Plugins   *jobsubmit.Plugins // nil: none
}

// readSubmit reads a job that the caller wants, as theirs.
func (a *Submissions) readSubmit(r *http.Request, who *call.Caller) (*submission, error) {
	limits := &a.Settings().Jobs
	// Escaping may double a script, and base64 adds a third; the limits themselves are checked on what it says.
	body, err := call.ReadBody(r, 2*int64(limits.MaxScript)+2*int64(limits.MaxEnv)+2*parcel.Max+1<<20)
	if err != nil {
		return nil, err
	}
	s, err := decodeSubmit(body.Bytes())
	call.PutBody(body)
	if err != nil {
		return nil, err
	}
	if err := a.checkSizes(s); err != nil {
		return nil, err
	}
	var unsaid []string
	if r.URL.RawQuery != "" { // most front ends say all
		unsaid = r.URL.Query()["unsaid"]
	}
	for _, word := range unsaid {
		for k := range len(s.Components) + 1 {
			spec := &s.Spec
			if k > 0 {
				spec = &s.Components[k-1]
			}
			switch word {
			case client.UnsaidRequeue:
				spec.Requeue = limits.MayRequeue
			case client.UnsaidAppend:
				spec.IO.Append = limits.AppendOutput
			}
		}
	}
	return s, a.own(r, &s.Spec, who)
}

// Submit admits a job. It is the hot path: one read, one pass over the bytes, two hashes, one commit shared with
// others.
func (a *Submissions) Submit(w http.ResponseWriter, r *http.Request, who *call.Caller) (any, error) {
	s, err := a.readSubmit(r, who)
	if err != nil {
		return nil, err
	}
	done, err := a.take(r, who, s)
	if err != nil {
		return nil, err
	}
	return nil, answerSubmit(w, done.ID, done.Duplicate, s)
}

// Foreign is a submission that another front end's handler has made, with what only such a handler may ask for.
type Foreign struct {
	client.Submit
	FailUnfit bool   // see state.Submit
	Tried     string // likewise
}

// Take admits a job as Submit does, under the same limits and rights.
func (a *Submissions) Take(r *http.Request, who *call.Caller, f *Foreign) (*state.Submitted, error) {
	s := &submission{Submit: f.Submit, script: []byte(f.Script), failUnfit: f.FailUnfit, tried: f.Tried}
	for _, e := range f.Env {
		s.nul = s.nul || strings.IndexByte(e, 0) >= 0
		s.env = append(append(s.env, e...), 0)
	}
	s.Script, s.Env = "", nil
	text, err := json.Marshal(&s.Spec)
	if err != nil {
		return nil, err
	}
	s.specSize = len(text)
	if err := a.checkSizes(s); err != nil {
		return nil, err
	}
	if err := a.own(r, &s.Spec, who); err != nil {
		return nil, err
	}
	return a.take(r, who, s)
}

// take admits a job that is its caller's and within the limits of size.
func (a *Submissions) take(r *http.Request, who *call.Caller, s *submission) (*state.Submitted, error) {
	spec := &s.Spec
	in := &state.Submit{
		By: who.Identity, Spec: spec, Script: s.script, Env: s.env, Files: s.Files,
		Strict: s.Strict || a.Settings().Jobs.StrictSubmit, FailUnfit: s.failUnfit,
		Tried: s.tried,
	}
	in.Groups = a.groupsOf(spec.UID, true)
	if s.Key != "" {
		in.Key = string(who.User) + "/" + s.Key // nobody meets another's job through a key
		if s.Retry {
			if id, err := a.Store.SubmitKey(r.Context(), in.Key); err == nil {
				return &state.Submitted{ID: id, Duplicate: true}, nil
			} else if !errors.Is(err, store.ErrNotFound) {
				return nil, call.StoreError(err)
			}
		}
	}
	if a.Plugins.Active() {
		if err := a.ask(r, who, s, in); err != nil {
			return nil, err
		}
		in.Script, in.Env = s.script, s.env
	}
	spec.Script, spec.Env = a.hashOf(s.script), a.hashOf(s.env)
	if spec.Extra == nil && len(s.Files) > 0 {
		spec.Extra = &core.Extra{}
	}
	if spec.Extra != nil {
		spec.Extra.Files = a.hashOf(s.Files)
	}
	if s.Run != "" {
		if err := a.checkSecrets(s); err != nil {
			return nil, err
		}
		in.Run = &core.Run{Name: s.Run, ID: call.NewRunID(), User: spec.User, Project: spec.Project, Wire: s.RunSpec}
		in.Run.Service = s.Service
		if s.Config != "" {
			in.Config = []byte(s.Config)
			in.Run.Config = a.hashOf(in.Config)
		}
	}
	if x := spec.Extra; x != nil && x.MailTypes != "" && x.MailUser == "" && a.Settings().Mail.Domain != "" {
		x.MailUser = string(spec.User) + "@" + a.Settings().Mail.Domain
	}
	if err := a.endings(r.Context(), who, in); err != nil {
		return nil, err
	}
	if err := a.components(r, s, in, who); err != nil {
		return nil, err
	}
	a.Hub.Keep(spec.Script, s.script)
	a.Hub.Keep(spec.Env, s.env)
	a.Hub.Keep(spec.More().Files, s.Files)
	size := int64(len(in.Script) + len(in.Env) + len(in.Files) + len(in.Config) + s.specSize)
	if err := a.Base.Keep(who, size); err != nil {
		return nil, err
	}
	reply, err := engine.Do(r.Context(), a.Engine, in)
	if err != nil || reply.Duplicate {
		a.Unkeep(who, size)
	}
	if err != nil {
		return nil, a.tellLost(err)
	}
	a.Submitted.Inc()
	if spec.User != who.User { // an administrator's act, told before it is answered
		who.Changed(&core.Job{ID: reply.ID, Spec: spec})
		if err := a.Confirm(r, who); err != nil {
			return nil, err
		}
	}
	return reply, nil
}

// checkSecrets refuses a run that names a secret which its project does not have. What was there may be gone when the
// run starts: it fails then.
func (a *Submissions) checkSecrets(s *submission) error {
	names, err := secrets.Names(s.env)
	if err != nil {
		return core.Errorf(core.Invalid, "%s", err.Error())
	}
	project := string(s.Spec.Project)
	snap := a.Engine.Snapshot()
	for _, name := range names {
		if _, ok := snap.Credential(core.SecretCredential, project, name); !ok && project != "" {
			return core.Errorf(core.Invalid, "there is no secret %q in project %s; `bireme secret set %s VALUE` makes it", name,
				project, name)
		}
	}
	return nil
}

// Redeploy completes a change of a service by the job of its new replicas, which f describes.
func (a *Submissions) Redeploy(r *http.Request, who *call.Caller, f *Foreign, edit *state.EditRun) error {
	s := &submission{Submit: f.Submit, script: []byte(f.Script)}
	for _, e := range f.Env {
		s.nul = s.nul || strings.IndexByte(e, 0) >= 0
		s.env = append(append(s.env, e...), 0)
	}
	if err := a.checkSizes(s); err != nil {
		return err
	}
	if err := a.own(r, &s.Spec, who); err != nil {
		return err
	}
	spec := &s.Spec
	spec.Script, spec.Env = a.hashOf(s.script), a.hashOf(s.env)
	if spec.Extra == nil {
		spec.Extra = &core.Extra{}
	}
	spec.Extra.Files = a.hashOf(f.Files)
	edit.Spec, edit.Script, edit.Env, edit.Files = spec, s.script, s.env, f.Files
	return nil
}

// answerSubmit writes a client.Submitted.
func answerSubmit(w http.ResponseWriter, id core.JobID, duplicate bool, s *submission) error {
	o := jsontext.BeginObject(make([]byte, 0, 64))
	o.Int("id", int64(id))
	o.OmitBool("duplicate", duplicate)
	o.OmitString("run", s.Run)
	o.OmitString("warning", s.told)
	call.WriteRaw(w, http.StatusOK, append(o.End(), '\n'))
	return nil
}

// Hash names a blob, as that of a submission is named.
func (a *Submissions) Hash(data []byte) core.Hash { return a.hashOf(data) }

// hashOf names a blob. Equal blobs have equal names; whoever has the names but not the key cannot try what a blob
// might be.
func (a *Submissions) hashOf(data []byte) (h core.Hash) {
	if len(data) == 0 {
		return h
	}
	mac := hmac.New(sha256.New, a.HashKey)
	mac.Write(data)
	mac.Sum(h[:0])
	return h
}

// Bounds of what stays in memory for a submission.
const (
	maxSpec = 64 << 10
	maxKey  = 256
)

func (a *Submissions) checkSizes(s *submission) error {
	limits := &a.Settings().Jobs
	switch {
	case s.specSize > maxSpec: // it stays in memory for the job's life
		return specTooLarge(s.specSize)
	case len(s.Key) > maxKey:
		return core.Errorf(core.Invalid, "key: %d bytes are too many; the limit is %d", len(s.Key), maxKey).
			Because("submit_key")
	case int64(len(s.script)) > int64(limits.MaxScript):
		return core.Errorf(core.TooLarge, "the script has %d bytes; the limit is %s", len(s.script), limits.MaxScript).
			Because("script_too_large")
	case int64(len(s.env)) > int64(limits.MaxEnv):
		return core.Errorf(core.TooLarge, "the environment has %d bytes; the limit is %s (jobs.max_env)", len(s.env),
			limits.MaxEnv).Because("environment_too_large")
	case int64(len(s.Config)) > int64(limits.MaxScript):
		return core.Errorf(core.TooLarge, "the run's configuration has %d bytes; the limit is %s (jobs.max_script)",
			len(s.Config), limits.MaxScript).Because("script_too_large")
	case len(s.Files) > parcel.Max:
		return core.Errorf(core.TooLarge, "the files have %d bytes; the limit is %d", len(s.Files), parcel.Max).
			Because("files_too_large")
	case s.Spec.Kind == core.Batch && len(s.script) == 0:
		return core.Errorf(core.Invalid, "a batch job needs a script").Because("no_script")
	case s.Spec.Kind == core.Batch && !bytes.HasPrefix(s.script, []byte("#!")):
		return core.Errorf(core.Invalid,
			"this does not look like a script: its first line must begin with #! and an interpreter").Because("invalid_script")
	case bytes.IndexByte(s.script, 0) >= 0:
		return core.Errorf(core.Invalid, "the script contains a NUL byte").Because("invalid_script")
	case s.nul:
		return call.ErrNUL()
	}
	return a.CheckEnv(s.env)
}

// own makes the job its caller's. What the client says of uid and gid is not believed; an administrator may name
// another user, by name or number, in spec.user.
func (a *Submissions) own(r *http.Request, spec *core.Spec, who *call.Caller) error {
	want := spec.User
	spec.User, spec.UID, spec.GID, spec.Run = who.User, who.UID, who.GID, ""
	if want != "" && want != who.User && string(want) != strconv.FormatUint(uint64(who.UID), 10) &&
		string(want) != who.UserRecord.UnixName {
		if err := a.ownAs(r, spec, who, want); err != nil {
			return err
		}
		return ownGroup(spec, who)
	}
	if box := spec.More().Container; !who.HasGID && (box == nil || box.Submitter) {
		return core.Errorf(core.Invalid,
			"user %s has no account on the cluster's machines to run processes as (unix_name); containers run without",
			who.User).Because("no_account")
	}
	return ownGroup(spec, who)
}

// ownGroup sets the group of the job that --gid names, which only an administrator may.
func ownGroup(spec *core.Spec, who *call.Caller) error {
	kept := spec.More().Kept
	if kept == nil || kept.Group == "" {
		return nil
	}
	want := kept.Group
	if !who.Admin {
		return core.Errorf(core.Denied, "only an administrator may choose the group of a job").Because("access_denied")
	}
	g, err := account.GroupByName(want)
	if n, bad := strconv.ParseUint(want, 10, 32); err != nil && bad == nil {
		g, err = account.GroupByGID(uint32(n))
	}
	if err != nil {
		return core.Errorf(core.Invalid, "there is no group %q on this host", want).Because("invalid_group")
	}
	spec.GID = g.GID
	return nil
}

// ownAs makes the job somebody else's.
func (a *Submissions) ownAs(r *http.Request, spec *core.Spec, who *call.Caller, want core.UserName) error {
	if !who.Admin {
		return core.Errorf(core.Denied, "only an administrator may submit for %s", want).Because("access_denied")
	}
	name, uid := string(want), (*uint32)(nil)
	if n, err := strconv.ParseUint(name, 10, 32); err == nil {
		v := uint32(n)
		name, uid = "", &v
	}
	acc, err := call.AccountOf(name, uid)
	if err != nil {
		return core.Errorf(core.Invalid, "there is no account %q on this host", want).Because("invalid_user")
	}
	reply, err := engine.Do(r.Context(), a.Engine, &state.EnsureUser{UID: acc.UID, UnixName: acc.Name})
	if err != nil {
		return err
	}
	u := reply
	spec.User, spec.UID, spec.GID = u.Name, acc.UID, acc.GID
	return nil
}

// groupsOf names the groups of a user, if some partition lets only members of groups in. A source that does not answer
// leaves them out: then such a partition stays shut.
func (a *Submissions) groupsOf(uid uint32, wanted bool) (names []string) {
	if !wanted || !slices.ContainsFunc(a.Engine.Snapshot().Partitions(),
		func(p core.Partition) bool { return len(p.AllowGroups) > 0 }) {
		return nil
	}
	return call.GroupNames(uid)
}

// tellLost adds to the refusal of a job that no node is large enough for which hosts are none, and why.
func (a *Submissions) tellLost(err error) error {
	var e *core.Error
	if !errors.As(err, &e) || e.Reason != "node_config_unavailable" && e.Reason != "memory_unsatisfiable" {
		return err
	}
	told := *e
	told.Message += a.Jobs.lostHosts(nil)
	return &told
}
