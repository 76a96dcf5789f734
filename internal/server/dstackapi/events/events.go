package events

import (
	"context"
	"errors"
	"slices"
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/dstack/wire"
	"bireme.dev/bireme/internal/server/api/call"
	"bireme.dev/bireme/internal/server/dstackapi/front"
	"bireme.dev/bireme/internal/store"
)

// Events answers the call for what happened.
type Events struct{ *call.Base }

// New makes the handlers.
func New(b *call.Base) *Events { return &Events{Base: b} }

// Rows lists the routes.
func (a *Events) Rows() []front.Row {
	return []front.Row{
		{Path: "/api/events/list", Level: front.Auth, Everywhere: true, Handle: front.OptionalBody(a.list)},
	}
}

type listBody struct {
	TargetProjects        *[]string  `json:"target_projects" in:"uuid,min=1,max=16"`
	TargetUsers           *[]string  `json:"target_users" in:"uuid,min=1,max=16"`
	TargetFleets          *[]string  `json:"target_fleets" in:"uuid,min=1,max=16"`
	TargetInstances       *[]string  `json:"target_instances" in:"uuid,min=1,max=16"`
	TargetRuns            *[]string  `json:"target_runs" in:"uuid,min=1,max=16"`
	TargetJobs            *[]string  `json:"target_jobs" in:"uuid,min=1,max=16"`
	TargetVolumes         *[]string  `json:"target_volumes" in:"uuid,min=1,max=16"`
	TargetGateways        *[]string  `json:"target_gateways" in:"uuid,min=1,max=16"`
	TargetGatewayReplicas *[]string  `json:"target_gateway_replicas" in:"uuid,min=1,max=16"`
	TargetSecrets         *[]string  `json:"target_secrets" in:"uuid,min=1,max=16"`
	TargetPresets         *[]string  `json:"target_presets" in:"uuid,min=1,max=16"`
	WithinProjects        *[]string  `json:"within_projects" in:"uuid,min=1,max=16"`
	WithinFleets          *[]string  `json:"within_fleets" in:"uuid,min=1,max=16"`
	WithinRuns            *[]string  `json:"within_runs" in:"uuid,min=1,max=16"`
	WithinGateways        *[]string  `json:"within_gateways" in:"uuid,min=1,max=16"`
	IncludeTargetTypes    *[]string  `json:"include_target_types" in:"max=16"`
	Actors                *[]*string `json:"actors" in:"uuid,max=16"`
	PrevRecordedAt        *string    `json:"prev_recorded_at" in:"time"`
	PrevID                *string    `json:"prev_id" in:"uuid"`
	Limit                 int        `json:"limit" in:"ge=1,le=100"`
	Ascending             bool       `json:"ascending"`
}

// Defaults are those of a client that sends nothing.
func (b *listBody) Defaults() { b.Limit = 100 }

// targets are the ids of which an event must be about one, and their type; "": no such list was sent.
func (b *listBody) targets() (ids []string, kind string, sent int) {
	for _, x := range []struct {
		kind string
		list *[]string
	}{
		{wire.TargetProject, b.TargetProjects},
		{wire.TargetUser, b.TargetUsers},
		{wire.TargetFleet, b.TargetFleets},
		{wire.TargetInstance, b.TargetInstances},
		{wire.TargetRun, b.TargetRuns},
		{wire.TargetJob, b.TargetJobs},
		{wire.TargetSecret, b.TargetSecrets},
		{"volume", b.TargetVolumes},
		{"gateway", b.TargetGateways},
		{"gateway-replica", b.TargetGatewayReplicas},
		{"preset", b.TargetPresets},
	} {
		if x.list != nil {
			ids, kind, sent = *x.list, x.kind, sent+1
		}
	}
	return ids, kind, sent
}

// within are the ids of which an event must be within one.
func (b *listBody) within() (ids []string, sent int) {
	for _, list := range []*[]string{b.WithinProjects, b.WithinFleets, b.WithinRuns, b.WithinGateways} {
		if list != nil {
			ids, sent = *list, sent+1
		}
	}
	return ids, sent
}

func (a *Events) list(c *front.Call, in *listBody) (any, error) {
	targets, kind, sent := in.targets()
	if sent > 1 {
		return nil, front.Errorf("At most one target_* filter can be specified at a time")
	}
	within, some := in.within()
	if some > 1 {
		return nil, front.Errorf("At most one within_* filter can be specified at a time")
	}
	done, err := a.Heavy(c.Context(), c.Caller)
	if err != nil {
		return nil, err
	}
	defer done()
	w := &walk{
		a: a, c: c, in: in, targets: targets, kind: kind, within: within, isWithin: some > 0,
		teller: newTeller(a, c),
	}
	if in.PrevRecordedAt != nil {
		w.prev, _ = wire.ParseTime(*in.PrevRecordedAt) // it has been checked
	}
	if in.Ascending {
		err = w.forward(c.Context())
	} else {
		err = w.backward(c.Context())
	}
	return w.out, err
}

// Bounds of one call: it reads events in batches, and no more than so many.
const (
	batch    = 1000
	maxReads = 100
)

// walk goes through events and takes those that are asked for.
type walk struct {
	a        *Events
	c        *front.Call
	in       *listBody
	targets  []string
	within   []string
	kind     string // of targets; "": any
	isWithin bool
	prev     core.Time // of the cursor; 0: none
	teller   *teller
	out      []wire.Event
	found    bool // the cursor's own event was passed
}

// backward takes the newest events first.
func (w *walk) backward(ctx context.Context) error {
	w.out = []wire.Event{}
	end := w.c.Snap.Seq()
	for range maxReads {
		from := max(0, end-batch)
		list, err := w.read(ctx, &from, end)
		if err != nil || len(list) == 0 {
			return err
		}
		told, err := w.teller.tell(ctx, list)
		if err != nil {
			return err
		}
		for _, e := range slices.Backward(told) {
			if w.take(&e) && len(w.out) == w.in.Limit {
				return nil
			}
		}
		if end = from; end == 0 {
			return nil
		}
	}
	return nil
}

// read gives the events after from up to end. Where the oldest are gone, from becomes the last that is.
func (w *walk) read(ctx context.Context, from *int64, end int64) ([]core.Event, error) {
	list, err := w.a.Store.Events(ctx, *from, int(end-*from))
	for gone := *from; errors.Is(err, store.ErrGone) && end-gone > 1; {
		mid := gone + (end-gone)/2
		if list, err = w.a.Store.Events(ctx, mid, int(end-mid)); err != nil {
			gone = mid
			continue
		}
		*from = 0 // nothing before is looked for: what is left between is less than a batch
		return list, nil
	}
	if errors.Is(err, store.ErrGone) {
		return nil, nil
	}
	return list, call.StoreError(err)
}

// forward takes the oldest events first, from the cursor's moment on.
func (w *walk) forward(ctx context.Context) error {
	w.out = []wire.Event{}
	at, err := w.seek(ctx)
	if err != nil {
		return err
	}
	for range maxReads {
		list, err := w.a.Store.Events(ctx, at, batch)
		if errors.Is(err, store.ErrGone) {
			at++ // it was purged meanwhile
			continue
		}
		if err != nil || len(list) == 0 {
			return call.StoreError(err)
		}
		told, err := w.teller.tell(ctx, list)
		if err != nil {
			return err
		}
		for i := range told {
			if w.take(&told[i]) && len(w.out) == w.in.Limit {
				return nil
			}
		}
		at = list[len(list)-1].Seq
	}
	return nil
}

// seek finds the number before the first event at the cursor's moment or later: times never go back.
func (w *walk) seek(ctx context.Context) (int64, error) {
	low, high := int64(0), w.c.Snap.Seq()
	for low < high {
		mid := low + (high-low)/2
		list, err := w.a.Store.Events(ctx, mid, 1)
		switch {
		case errors.Is(err, store.ErrGone) || len(list) > 0 && list[0].At < w.prev:
			low = mid + 1
		case err != nil:
			return 0, call.StoreError(err)
		default:
			high = mid
		}
	}
	return low, nil
}

// take keeps an event that is asked for, and reports whether it did.
func (w *walk) take(e *told) bool {
	if w.prev != 0 && !w.isPast(e) {
		return false
	}
	if !w.matches(e) {
		return false
	}
	w.out = append(w.out, e.Event)
	return true
}

// isPast reports whether an event comes after the cursor. Of those at the cursor's moment the ones after the cursor's
// own do.
func (w *walk) isPast(e *told) bool {
	if e.at != w.prev {
		return (e.at > w.prev) == w.in.Ascending
	}
	if w.in.PrevID == nil {
		return w.in.Ascending
	}
	past := w.found
	if strings.EqualFold(e.ID, *w.in.PrevID) {
		w.found = true
	}
	return past
}

func (w *walk) matches(e *told) bool {
	about := func(kind string, ids []string) bool {
		return slices.ContainsFunc(e.Targets, func(t wire.EventTarget) bool {
			return (kind == "" || t.Type == kind) && slices.Contains(ids, t.ID)
		})
	}
	if w.kind != "" && !about(w.kind, w.targets) {
		return false
	}
	if w.isWithin && !about("", w.within) && !slices.ContainsFunc(e.within, func(id string) bool {
		return slices.Contains(w.within, id)
	}) {
		return false
	}
	if l := w.in.IncludeTargetTypes; l != nil && !slices.ContainsFunc(e.Targets, func(t wire.EventTarget) bool {
		return slices.Contains(*l, t.Type)
	}) {
		return false
	}
	if l := w.in.Actors; l != nil && !slices.ContainsFunc(*l, func(id *string) bool {
		return id == nil && e.ActorUserID == nil || id != nil && e.ActorUserID != nil &&
			strings.EqualFold(*id, *e.ActorUserID)
	}) {
		return false
	}
	return true
}
