package state

import (
	"encoding/json"
	"fmt"
	"reflect"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/sched"
)

// Record is one line of a recording: what happened to a State and beside it, in the order it happened. One of its parts
// is set. Replaying the lines gives the same decisions.
type Record struct {
	Load  *Loaded         `json:"load,omitempty"` // the state was built
	Now   core.Time       `json:"now,omitempty"`  // of Kind or Pass: when it was applied
	Kind  string          `json:"kind,omitempty"` // an input
	Input json.RawMessage `json:"input,omitempty"`
	Told  bool            `json:"told,omitempty"` // the planner was given what PlannerChanges returned
	Pass  *Passed         `json:"pass,omitempty"` // the planner planned and its starts were applied
	Seal  bool            `json:"seal,omitempty"` // the batch ended
}

// Loaded is what a state was built from.
type Loaded struct {
	Config Config
	Image  *Image
}

// Passed is a pass of the planner.
type Passed struct {
	Now      core.Time       `json:"now"`  // as it was for the planner
	Seen     int64           `json:"seen"` // how much of what it was told it had taken in
	Starts   []sched.Start   `json:"starts,omitempty"`
	Preempts []sched.Preempt `json:"preempts,omitempty"`
}

// RecordInput makes the line of an input, without anybody's secrets. It must be called before Apply, which completes
// what it is given.
func RecordInput(in Input, now core.Time) (*Record, error) {
	name := reflect.TypeOf(in).Elem().Name()
	if kindByName[name] == nil {
		return nil, fmt.Errorf("input %s has no place in recordings", name)
	}
	data, err := json.Marshal(redacted(in))
	return &Record{Now: now, Kind: name, Input: data}, err
}

// Decode gives the input of a line back.
func (r *Record) Decode() (Input, error) {
	k := kindByName[r.Kind]
	if k == nil {
		return nil, fmt.Errorf("there is no input %q", r.Kind)
	}
	v := reflect.New(k.typ)
	if err := json.Unmarshal(r.Input, v.Interface()); err != nil {
		return nil, fmt.Errorf("input %s: %w", r.Kind, err)
	}
	return v.Interface().(Input), nil
}
