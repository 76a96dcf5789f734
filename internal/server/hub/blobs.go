package hub

import (
	"container/list"
	"context"
	"sync"

	"bireme.dev/bireme/internal/core"
)

// BlobFunc fetches a blob from the store.
type BlobFunc func(ctx context.Context, h core.Hash) ([]byte, error)

// blobs keeps the scripts and environments that were submitted or launched last, so that a job that starts at once is
// launched without reading back what was just written.
type blobs struct {
	fetch BlobFunc
	room  int

	mu   sync.Mutex
	used int
	by   map[core.Hash]*list.Element
	lru  *list.List // of *core.Blob, oldest first
}

func newBlobs(room int, fetch BlobFunc) *blobs {
	return &blobs{fetch: fetch, room: room, by: map[core.Hash]*list.Element{}, lru: list.New()}
}

func (b *blobs) put(h core.Hash, data []byte) {
	if h.IsZero() || len(data) > b.room/4 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if e, ok := b.by[h]; ok {
		b.lru.MoveToBack(e)
		return
	}
	b.by[h] = b.lru.PushBack(&core.Blob{Hash: h, Data: data})
	b.used += len(data)
	for b.used > b.room {
		old := b.lru.Remove(b.lru.Front()).(*core.Blob)
		delete(b.by, old.Hash)
		b.used -= len(old.Data)
	}
}

func (b *blobs) get(ctx context.Context, h core.Hash) ([]byte, error) {
	if h.IsZero() {
		return nil, nil
	}
	b.mu.Lock()
	if e, ok := b.by[h]; ok {
		b.lru.MoveToBack(e)
		data := e.Value.(*core.Blob).Data
		b.mu.Unlock()
		return data, nil
	}
	b.mu.Unlock()
	data, err := b.fetch(ctx, h)
	if err != nil {
		return nil, err
	}
	b.put(h, data)
	return data, nil
}
