package audit

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"bireme.dev/bireme/internal/core"
)

// Bounds of the writer.
const (
	queueLen   = 4096
	batchLen   = 256
	gather     = 100 * time.Millisecond // entries that nobody waits for are written together
	retryEvery = 250 * time.Millisecond
	writeWait  = 5 * time.Second // the longest a caller waits for an entry to be on disk
)

// AppendFunc writes entries durably, all or none.
type AppendFunc func(ctx context.Context, list []*core.AuditEntry) error

// Config of a Log.
type Config struct {
	Append AppendFunc
	Export string // see config.Audit.Export; empty: none
	Log    *slog.Logger
	Now    func() time.Time // nil: time.Now
}

// Log is the audit log of a server. Make it with New, then Run it.
type Log struct {
	cfg     Config
	queue   chan *item
	limiter limiter
	export  *exporter // nil: none
	stats   Stats
}

// Stats counts, for metrics.
type Stats struct {
	Written  atomic.Int64 // rows in the store
	Dropped  atomic.Int64 // entries lost because the queue was full
	Failed   atomic.Int64 // attempts to write that failed
	Unsent   atomic.Int64 // rows that could not be exported
	lastSaid atomic.Int64 // how many drops the log was told
}

type item struct {
	entry *core.AuditEntry // nil: somebody only waits for those before
	done  chan struct{}    // closed when it is on disk; nil: nobody waits
}

// New makes a log.
func New(cfg Config) (*Log, error) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	l := &Log{cfg: cfg, queue: make(chan *item, queueLen)}
	if cfg.Export != "" {
		e, err := newExporter(cfg.Export, cfg.Log, &l.stats)
		if err != nil {
			return nil, err
		}
		l.export = e
	}
	return l, nil
}

// Stats are the log's counters.
func (l *Log) Stats() *Stats { return &l.stats }

// Write adds an entry and returns when it is on disk. An error means that it is not, yet: the log continues trying.
func (l *Log) Write(ctx context.Context, e *core.AuditEntry) error {
	return l.await(ctx, l.finish(e))
}

// Flush returns when every entry that was added before it is on disk, except for what is told at the end of the minute.
func (l *Log) Flush(ctx context.Context) error { return l.await(ctx, nil) }

func (l *Log) await(ctx context.Context, e *core.AuditEntry) error {
	it := &item{entry: e, done: make(chan struct{})}
	ctx, cancel := context.WithTimeout(ctx, writeWait)
	defer cancel()
	select {
	case l.queue <- it:
	case <-ctx.Done():
		if e != nil {
			l.stats.Dropped.Add(1)
		}
		return ctx.Err()
	}
	select {
	case <-it.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Note adds an entry that nobody waits for, unless the minute has had its share of like ones.
func (l *Log) Note(e *core.AuditEntry) {
	if e = l.limiter.admit(l.finish(e)); e != nil {
		l.put(e)
	}
}

func (l *Log) finish(e *core.AuditEntry) *core.AuditEntry {
	e.Clean()
	if e.At == 0 {
		e.At = core.At(l.cfg.Now())
	}
	return e
}

func (l *Log) put(e *core.AuditEntry) {
	select {
	case l.queue <- &item{entry: e}:
	default:
		l.stats.Dropped.Add(1)
	}
}

// Run writes until ctx ends, and then what is left.
func (l *Log) Run(ctx context.Context) error {
	if l.export != nil {
		stop := l.export.start()
		defer stop()
	}
	window := time.NewTicker(windowLen)
	defer window.Stop()
	for {
		select {
		case <-ctx.Done():
			l.drain()
			return nil
		case <-window.C:
			l.closeWindow()
		case it := <-l.queue:
			l.write(ctx, l.gather(ctx, it))
		}
	}
}

// closeWindow writes what the limiter held back.
func (l *Log) closeWindow() {
	for _, e := range l.limiter.closeWindow() {
		l.put(e)
	}
	if n := l.stats.Dropped.Load(); n != l.stats.lastSaid.Swap(n) {
		l.cfg.Log.Error("audit entries were lost: the queue was full", "lost", n)
	}
}

// gather takes what waits, and gives others a moment to come as long as nobody waits for an entry.
func (l *Log) gather(ctx context.Context, first *item) []*item {
	list := []*item{first}
	urgent := first.done != nil
	t := time.NewTimer(gather)
	defer t.Stop()
	for len(list) < batchLen {
		if urgent {
			select {
			case it := <-l.queue:
				list = append(list, it)
				continue
			default:
				return list
			}
		}
		select {
		case it := <-l.queue:
			list, urgent = append(list, it), it.done != nil
		case <-t.C:
			return list
		case <-ctx.Done():
			return list
		}
	}
	return list
}

// write writes a batch, trying again until it is on disk or ctx has ended.
func (l *Log) write(ctx context.Context, list []*item) {
	rows := make([]*core.AuditEntry, 0, len(list))
	for _, it := range list {
		if it.entry != nil {
			rows = append(rows, it.entry)
		}
	}
	failing := false
	for {
		err := l.cfg.Append(context.WithoutCancel(ctx), rows)
		if err == nil {
			break
		}
		l.stats.Failed.Add(1)
		if !failing {
			l.cfg.Log.Error("the audit log cannot be written; trying again", "entries", len(rows), "err", err)
			failing = true
		}
		t := time.NewTimer(retryEvery)
		select {
		case <-ctx.Done():
			t.Stop()
			l.stats.Dropped.Add(int64(len(rows)))
			return
		case <-t.C:
		}
	}
	if failing {
		l.cfg.Log.Info("the audit log is written again")
	}
	l.stats.Written.Add(int64(len(rows)))
	for _, it := range list {
		if it.done != nil {
			close(it.done)
		}
	}
	if l.export != nil && len(rows) > 0 {
		l.export.send(rows)
	}
}

// drain writes what is left when the server stops.
func (l *Log) drain() {
	for _, e := range l.limiter.closeWindow() {
		l.put(e)
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel() // one attempt each
	for {
		select {
		case it := <-l.queue:
			it.done = nonNil(it.done)
			l.write(ended, l.gather(ended, it))
		default:
			return
		}
	}
}

func nonNil(c chan struct{}) chan struct{} {
	if c == nil {
		return make(chan struct{})
	}
	return c
}
