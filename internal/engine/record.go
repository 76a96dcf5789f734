package engine

import (
	"bufio"
	"encoding/json"
	"io"
	"log/slog"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state"
)

// recorder writes what the writer does, a line each, for `bireme simulate --replay`. All its methods do nothing on a
// nil one. It ends at the first fault: a recording with a gap would replay as something else.
type recorder struct {
	w      *bufio.Writer
	log    *slog.Logger
	failed bool
}

func newRecorder(w io.Writer, log *slog.Logger) *recorder {
	if w == nil {
		return nil
	}
	return &recorder{w: bufio.NewWriterSize(w, 64<<10), log: log}
}

func (r *recorder) line(rec *state.Record, err error) {
	if r == nil || r.failed {
		return
	}
	var data []byte
	if err == nil {
		data, err = json.Marshal(rec)
	}
	if err == nil {
		_, err = r.w.Write(append(data, '\n'))
	}
	if err == nil && rec.Seal {
		err = r.w.Flush()
	}
	if err != nil {
		r.failed = true
		r.log.Error("the recording ends here", "err", err)
	}
}

func (r *recorder) load(cfg state.Config, img *state.Image) {
	if r != nil {
		r.line(state.RecordLoad(cfg, img), nil)
	}
}

func (r *recorder) input(in state.Input, now core.Time) {
	if r != nil {
		r.line(state.RecordInput(in, now))
	}
}

func (r *recorder) plannerFed() {
	if r != nil {
		r.line(&state.Record{Told: true}, nil)
	}
}

func (r *recorder) pass(s *startBatch, now core.Time) {
	if r != nil {
		r.line(&state.Record{
			Now:  now,
			Pass: &state.Passed{Now: s.now, Seen: s.seenSeq, Starts: s.starts, Preempts: s.preempts},
		}, nil)
	}
}

func (r *recorder) seal() {
	if r != nil {
		r.line(&state.Record{Seal: true}, nil)
	}
}

// flush writes what is left when the engine stops.
func (r *recorder) flush() {
	if r == nil || r.failed {
		return
	}
	if err := r.w.Flush(); err != nil {
		r.log.Error("the end of the recording is lost", "err", err)
	}
}
