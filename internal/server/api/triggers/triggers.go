package triggers

import (
	"net/http"
	"os"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/server/api/call"
	"bireme.dev/bireme/internal/server/trigger"
)

// Triggers answers the routes of triggers.
type Triggers struct {
	*call.Base
	Watcher *trigger.Watcher
}

// List shows administrators all triggers and others their own.
func (a *Triggers) List(_ http.ResponseWriter, _ *http.Request, who *call.Caller) (any, error) {
	own, err := scope(who)
	if err != nil {
		return &client.TriggerList{Triggers: []client.Trigger{}}, nil //nolint:nilerr // who has no uid has no triggers
	}
	return &client.TriggerList{Triggers: a.Watcher.List(own)}, nil
}

// Set makes a trigger of the caller's. Programs run as the caller on this host, so it must be known who that is here.
func (a *Triggers) Set(_ http.ResponseWriter, r *http.Request, who *call.Caller) (any, error) {
	var in client.Trigger
	if err := call.Decode(r, &in); err != nil {
		return nil, err
	}
	uid, err := uidOf(who)
	if err != nil {
		return nil, err
	}
	switch euid := os.Geteuid(); {
	case uid == 0 && !call.AtSocket(r, who):
		return nil, core.Errorf(core.Denied, "root sets triggers on the server's own host only").Because("access_denied")
	case euid != 0 && uid != uint32(euid):
		return nil, core.Errorf(core.Denied, "this server is not root and runs no programs as %s", who.User).
			Because("access_denied")
	}
	if v, err := a.Viewer(who); err != nil {
		return nil, err
	} else if v.HidesLive(in.Job) {
		return nil, core.Errorf(core.NotFound, "there is no job %d", in.Job).Because("invalid_job_id")
	}
	in.User, in.UID = who.User, uid
	return a.Watcher.Set(r.Context(), in, who.Admin)
}

// Clear removes triggers: an administrator anybody's, others their own.
func (a *Triggers) Clear(_ http.ResponseWriter, r *http.Request, who *call.Caller) (any, error) {
	var in client.ClearTriggers
	if err := call.Decode(r, &in); err != nil {
		return nil, err
	}
	if in.ID == 0 && in.Job == 0 && in.UID == nil {
		return nil, core.Errorf(core.Invalid, "name an id, a job or a user")
	}
	own, err := scope(who)
	if err != nil {
		return nil, err
	}
	n, err := a.Watcher.Clear(r.Context(), in, own)
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, core.Errorf(core.NotFound, "there is no such trigger").Because("no_such_trigger")
	}
	return &client.TriggersCleared{Cleared: n}, nil
}

// scope is the user whose triggers a caller deals with; nil: everybody's.
func scope(who *call.Caller) (*uint32, error) {
	if who.Admin {
		return nil, nil
	}
	uid, err := uidOf(who)
	return &uid, err
}

func uidOf(who *call.Caller) (uint32, error) {
	if who.UserRecord == nil || who.UserRecord.UID == nil {
		return 0, core.Errorf(core.Denied, "user %s has no uid on this host", who.User).Because("access_denied")
	}
	return *who.UserRecord.UID, nil
}
