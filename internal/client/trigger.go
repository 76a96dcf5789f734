package client

import (
	"context"
	"slices"

	"bireme.dev/bireme/internal/core"
)

// Resources that a trigger watches.
const (
	TriggerNode       = "node"
	TriggerJob        = "job"
	TriggerController = "slurmctld"
	TriggerAccounting = "slurmdbd"
	TriggerDatabase   = "database"
	TriggerFrontEnd   = "front_end"
	TriggerOther      = "other"
)

// Events that a trigger waits for, in the words of strigger.
const (
	EventDown            = "down"
	EventUp              = "up"
	EventDrained         = "drained"
	EventFail            = "fail"
	EventIdle            = "idle"
	EventReconfig        = "reconfig"
	EventTime            = "time"
	EventFini            = "fini"
	EventBurstBuffer     = "burst_buffer"
	EventServerResumed   = "primary_slurmctld_resumed_operation"
	EventServerInControl = "primary_slurmctld_resumed_control"
	EventDatabaseFailed  = "primary_database_failure"
	EventDatabaseResumed = "primary_database_resumed_operation"
)

// triggerEvents are those that each resource has.
var triggerEvents = map[string][]string{
	TriggerNode: {EventDown, EventUp, EventDrained, EventFail, EventIdle, EventReconfig},
	TriggerJob:  {EventTime, EventFini, EventDown, EventUp, EventDrained, EventFail, EventIdle},
	TriggerController: {
		"primary_slurmctld_failure", EventServerResumed, EventServerInControl, "primary_slurmctld_acct_buffer_full",
		"backup_slurmctld_failure", "backup_slurmctld_resumed_operation", "backup_slurmctld_assumed_control",
	},
	TriggerAccounting: {"primary_slurmdbd_failure", "primary_slurmdbd_resumed_operation"},
	TriggerDatabase:   {EventDatabaseFailed, EventDatabaseResumed},
	TriggerFrontEnd:   {EventDown, EventUp},
	TriggerOther:      {EventBurstBuffer},
}

// HasEvent reports whether a resource has an event.
func HasEvent(resource, event string) bool { return slices.Contains(triggerEvents[resource], event) }

// Trigger runs a program on the server, as its user, when something has happened.
type Trigger struct {
	ID       int64         `json:"id"`
	User     core.UserName `json:"user"`
	UID      uint32        `json:"uid"`
	Resource string        `json:"resource"`
	Job      core.JobID    `json:"job,omitempty"`
	Nodes    string        `json:"nodes,omitempty"` // a host list; empty: all
	Events   []string      `json:"events"`          // any of them
	// Offset is in seconds after the event. Before a time limit it is negative; for idle nodes it is how long they are.
	Offset  int32  `json:"offset,omitempty"`
	Perm    bool   `json:"perm,omitempty"` // it stays after it has fired
	Program string `json:"program"`        // an absolute path, and arguments after blanks
}

// TriggerList answers GET /api/v1/triggers.
type TriggerList struct {
	Triggers []Trigger `json:"triggers"` // by id
}

// ClearTriggers is the body of POST /api/v1/triggers/clear: those that all of it is true of. Something must be set.
type ClearTriggers struct {
	ID  int64      `json:"id,omitempty"`
	Job core.JobID `json:"job,omitempty"`
	UID *uint32    `json:"uid,omitempty"`
}

// TriggersCleared answers it.
type TriggersCleared struct {
	Cleared int `json:"cleared"`
}

// Triggers lists triggers.
func (c *TriggerClient) Triggers(ctx context.Context) ([]Trigger, error) {
	out, err := get[TriggerList](ctx, c, api+"/triggers", nil)
	if err != nil {
		return nil, err
	}
	return out.Triggers, nil
}

// SetTrigger makes one.
func (c *TriggerClient) SetTrigger(ctx context.Context, t *Trigger) (*Trigger, error) {
	out := new(Trigger)
	if err := c.do(ctx, call{method: "POST", path: api + "/triggers", body: t}, out); err != nil {
		return nil, err
	}
	return out, nil
}

// ClearTriggers removes some.
func (c *TriggerClient) ClearTriggers(ctx context.Context, which *ClearTriggers) (*TriggersCleared, error) {
	out := new(TriggersCleared)
	if err := c.do(ctx, call{method: "POST", path: api + "/triggers/clear", body: which}, out); err != nil {
		return nil, err
	}
	return out, nil
}
