package reseal

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/jsontext"
	"bireme.dev/bireme/internal/engine/state"
	"bireme.dev/bireme/internal/engine/state/credentials"
	"bireme.dev/bireme/internal/engine/state/fleets"
	"bireme.dev/bireme/internal/server/seal"
	"bireme.dev/bireme/internal/store"
)

// lease is how long a rotation without a server leads between renewals.
const lease = time.Minute

// Offline rotates in a store that no server leads. It leads itself meanwhile, so that no server starts during the
// rotation.
func Offline(ctx context.Context, st store.Store, ring *seal.Ring, holder string, log *slog.Logger) (err error) {
	epoch, err := st.Lead(ctx, holder, lease, 0, 0)
	if errors.Is(err, store.ErrHeld) {
		return core.Errorf(core.Conflict, "a server leads this cluster: run `biremed seal rotate` on its host")
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		renew(ctx, cancel, st, holder, epoch)
	}()
	defer func() {
		cancel(nil)
		<-ended
		_, lerr := st.Lead(context.WithoutCancel(ctx), holder, 0, epoch, 0)
		err = errors.Join(err, lerr)
	}()
	img, err := st.Load(ctx)
	if err != nil {
		return err
	}
	o := &offline{st: st, epoch: epoch, img: img}
	r := New(Config{
		Store: st, Ring: ring, Epoch: func() int64 { return epoch }, Log: log,
		Fleets: func() []*core.Fleet { return img.Fleets }, Put: o.put,
		Credentials: func() []*core.Credential { return img.Credentials }, PutCredential: o.putCredential,
	})
	if err := r.Open(ctx); err != nil {
		return err
	}
	if err := r.Begin(ctx); err != nil {
		return err
	}
	if err := r.Finish(ctx); err != nil {
		return err
	}
	if err := st.Compact(ctx); err != nil {
		return fmt.Errorf("everything is sealed with the new key, but what was there before may be left in unused "+
			"parts of the store's files: %w", err)
	}
	return nil
}

func renew(ctx context.Context, cancel context.CancelCauseFunc, st store.Store, holder string, epoch int64) {
	tick := time.NewTicker(lease / 4)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if _, err := st.Lead(ctx, holder, lease, epoch, 0); errors.Is(err, store.ErrStale) {
			cancel(fmt.Errorf("another server is the leader now: %w", err))
			return
		}
	}
}

// offline writes fleets as an engine would.
type offline struct {
	st    store.Store
	epoch int64
	img   *store.Image
}

func (o *offline) put(ctx context.Context, in *state.ResealFleet) error {
	for i, f := range o.img.Fleets {
		if f.Name != in.Name {
			continue
		}
		next, changed := fleets.Reseal(f, in.Texts, in.Runs)
		if !changed {
			return nil
		}
		data := append(jsontext.AppendString([]byte(`{"fleet":`), f.Name), '}')
		event := core.Event{Seq: o.img.Seq + 1, At: o.img.Now, Kind: core.FleetChanged, Data: data}
		if err := o.st.Commit(ctx, o.epoch, &core.Changes{
			Now: o.img.Now, Fleets: []*core.Fleet{next},
			Events: []core.Event{event},
		}); err != nil {
			return err
		}
		o.img.Fleets[i], o.img.Seq = next, event.Seq
	}
	return nil
}

func (o *offline) putCredential(ctx context.Context, in *state.ResealCredential) error {
	set := credentials.NewSet(o.img.Credentials)
	changes := &core.Changes{Now: o.img.Now}
	credentials.NewRegistry(&set, &offlineJournal{o, changes}).Reseal((*credentials.Reseal)(in))
	if err := o.st.Commit(ctx, o.epoch, changes); err != nil {
		return err
	}
	o.img.Credentials, o.img.Seq = set.Credentials(), o.img.Seq+int64(len(changes.Events))
	return nil
}

// offlineJournal collects the changes of one commit.
type offlineJournal struct {
	*offline
	changes *core.Changes
}

func (j *offlineJournal) Now() core.Time         { return j.img.Now }
func (j *offlineJournal) Changes() *core.Changes { return j.changes }

func (j *offlineJournal) Event(kind core.EventKind, e core.Event) {
	e.Seq, e.At, e.Kind = j.img.Seq+1+int64(len(j.changes.Events)), j.img.Now, kind
	j.changes.Events = append(j.changes.Events, e)
}
