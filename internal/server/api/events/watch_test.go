package events

import (
	"testing"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine"
)

// A watcher gets all commits that came meanwhile at once, in order, and none twice.
func TestWatcherTakesWhatCameMeanwhile(t *testing.T) {
	t.Parallel()
	w := NewWatchers()
	sub, stop := w.add()
	defer stop()
	commit := func(seq int64) {
		w.Publish(&engine.Published{Changes: &core.Changes{Events: []core.Event{{Seq: seq}}}})
	}
	_, wake, ok := w.take(sub)
	if wake == nil || !ok {
		t.Fatal("there is something before the first commit")
	}
	const n = takeMost + 10
	for seq := range int64(n) {
		commit(seq + 1)
	}
	<-wake
	var got []int64
	for {
		commits, wake, ok := w.take(sub)
		if !ok {
			t.Fatal("the watcher was dropped")
		}
		if wake != nil {
			break
		}
		if len(commits) > takeMost {
			t.Errorf("%d commits at once", len(commits))
		}
		for _, b := range commits {
			got = append(got, b.events[0].Seq)
		}
	}
	if len(got) != n || got[0] != 1 || got[n-1] != n {
		t.Errorf("%d events: %v", len(got), got)
	}
}

// Who has few streams hears at once; who has many, the later the more of them there are.
func TestRestOfStreams(t *testing.T) {
	t.Parallel()
	for streams, want := range map[int]time.Duration{
		0: 0, 1: 0, restFrom: 0, restFrom + 100: 100 * restEach,
		restFrom + 1000: 1000 * restEach,
	} {
		if d := restOf(streams); d != want {
			t.Errorf("with %d streams: %v", streams, d)
		}
	}
}
