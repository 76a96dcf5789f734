package events

import (
	"context"
	"encoding/json"
	"strconv"
	"sync"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/server/api/call"
)

// eventBatch is events that many streams write: those of a commit, or a page of the store. Their text is made once
// for all.
type eventBatch struct {
	events []core.Event // not changed

	once  sync.Once
	texts []byte
	ends  []int // of each event's text in texts
	err   error
}

// text is an event as a stream has it.
func (b *eventBatch) text(i int) ([]byte, error) {
	b.once.Do(func() {
		b.ends = make([]int, len(b.events))
		for i := range b.events {
			if b.texts, b.err = appendEvent(b.texts, &b.events[i]); b.err != nil {
				return
			}
			b.ends[i] = len(b.texts)
		}
	})
	if b.err != nil {
		return nil, b.err
	}
	start := 0
	if i > 0 {
		start = b.ends[i-1]
	}
	return b.texts[start:b.ends[i]], nil
}

func appendEvent(b []byte, e *core.Event) ([]byte, error) {
	data, err := json.Marshal(e)
	if err != nil {
		return b, err
	}
	b = append(b, "id: "...)
	b = strconv.AppendInt(b, e.Seq, 10)
	b = append(b, "\nevent: "...)
	b = append(b, e.Kind...)
	b = append(b, "\ndata: "...)
	b = append(b, data...)
	return append(b, '\n', '\n'), nil
}

// pastPages keeps pages of past events that were read lately. Many streams that begin at the same number read each
// once.
type pastPages struct {
	mu    sync.Mutex
	pages [4]pastEntry
	next  int
}

type pastEntry struct {
	after int64 // the number before its first event
	read  time.Time
	batch *eventBatch
}

// pastAge is for how long a page is kept: events may be purged meanwhile.
const pastAge = 10 * time.Second

func (p *pastPages) find(after int64) *eventBatch {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.pages {
		e := &p.pages[i]
		switch {
		case e.batch == nil:
		case time.Since(e.read) > pastAge:
			*e = pastEntry{}
		case e.after == after:
			return e.batch
		}
	}
	return nil
}

func (p *pastPages) add(after int64, b *eventBatch) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pages[p.next] = pastEntry{after, time.Now(), b}
	p.next = (p.next + 1) % len(p.pages)
}

// pastEvents is a page of the events after a number, read when it is the caller's turn.
func (a *Events) pastEvents(ctx context.Context, turns *call.Held, after int64) (b *eventBatch, err error) {
	err = turns.Turn(ctx, func() error {
		if b = a.past.find(after); b != nil {
			return nil
		}
		events, err := a.Store.Events(ctx, after, pastPage)
		if err != nil {
			return err
		}
		if b = (&eventBatch{events: events}); len(events) == pastPage { // else there may be more of them next time
			a.past.add(after, b)
		}
		return nil
	})
	return b, err
}
