package hub

import (
	"container/list"
	"context"
	"sync"
	"time"

	"bireme.dev/bireme/internal/core"
)

// BlobFunc fetches a blob from the store.
type BlobFunc func(ctx context.Context, h core.Hash) ([]byte, error)

// blobs keeps scripts and environments that will be wanted soon, so that a job is launched without reading back what
// was just written. A queue is first in, first out: what was submitted waits its turn and is not pushed out by what
// came after it (that would push out each blob just before its use); when there is no room the newcomer is not kept.
// What was used makes room, and stays a while for the next task of its array; what nobody wanted for waitMost does
// not stay.
type blobs struct {
	fetch BlobFunc
	room  int // bytes of what waits; a quarter of it more for what was used

	mu      sync.Mutex
	by      map[core.Hash]*list.Element // of either list
	waiting *list.List                  // of *kept that were submitted, the oldest first
	recent  *list.List                  // of *kept that were used, the longest unused first
	held    int                         // bytes that wait
	used    int                         // bytes that were used
}

const waitMost = time.Minute

// kept is a blob in memory.
type kept struct {
	core.Blob
	since time.Time
	used  bool // it is in recent
}

func newBlobs(room int, fetch BlobFunc) *blobs {
	return &blobs{fetch: fetch, room: room, by: map[core.Hash]*list.Element{}, waiting: list.New(), recent: list.New()}
}

// put keeps a blob that was submitted.
func (b *blobs) put(h core.Hash, data []byte) {
	if h.IsZero() {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.by[h] != nil {
		return
	}
	now := time.Now()
	for e := b.waiting.Front(); e != nil && b.held+len(data) > b.room &&
		now.Sub(e.Value.(*kept).since) > waitMost; e = b.waiting.Front() {
		b.take(e)
	}
	if b.held+len(data) > b.room {
		return
	}
	b.by[h] = b.waiting.PushBack(&kept{Blob: core.Blob{Hash: h, Data: data}, since: now})
	b.held += len(data)
}

// take removes a blob that waits. b.mu is held.
func (b *blobs) take(e *list.Element) {
	k := b.waiting.Remove(e).(*kept)
	delete(b.by, k.Hash)
	b.held -= len(k.Data)
}

func (b *blobs) get(ctx context.Context, h core.Hash) ([]byte, error) {
	if h.IsZero() {
		return nil, nil
	}
	b.mu.Lock()
	if e := b.by[h]; e != nil {
		k := e.Value.(*kept)
		if k.used {
			b.recent.MoveToBack(e)
		} else {
			b.take(e)
			b.keepRecent(h, k.Data)
		}
		b.mu.Unlock()
		return k.Data, nil
	}
	b.mu.Unlock()
	data, err := b.fetch(ctx, h)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	b.keepRecent(h, data)
	b.mu.Unlock()
	return data, nil
}

// keepRecent notes a blob that was just used. b.mu is held.
func (b *blobs) keepRecent(h core.Hash, data []byte) {
	room := b.room / 4
	if b.by[h] != nil || len(data) > room/4 {
		return
	}
	b.by[h] = b.recent.PushBack(&kept{Blob: core.Blob{Hash: h, Data: data}, used: true})
	for b.used += len(data); b.used > room; {
		old := b.recent.Remove(b.recent.Front()).(*kept)
		delete(b.by, old.Hash)
		b.used -= len(old.Data)
	}
}
