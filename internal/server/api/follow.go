package api

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/server/api/call"
	"bireme.dev/bireme/internal/server/pass"
)

// A server that follows answers what its copy of the state and the store know. The rest is handed to the one that
// leads.

// ofLeader are the calls that change nothing, and yet are for the server that leads: agents talk to it, it has their
// output, it plans.
var ofLeader = map[string]bool{
	"GET /nodes": true, "GET /nodes/{name}": true, "GET /plan": true, "GET /seals": true, "GET /ca": true,
	"GET /jobs/{id}/why": true, "GET /jobs/{id}/logs": true, "GET /jobs/{id}/metrics": true,
	"GET /jobs/{id}/steps/{step}/usage": true, "GET /jobs/{id}/steps/{step}/attach": true,
	"GET /jobs/{id}/steps/{step}/resume": true, "GET /streams/{key}": true, "GET /triggers": true,
}

// MinSeqHeader asks for an answer that covers an event.
const MinSeqHeader = "Bireme-Min-Seq"

// catchUp is how long a read waits for the copy to have what its caller has written.
const catchUp = 5 * time.Second

// maxBehind is how old the copy may be that reads are answered from: rights are taken back, tokens revoked.
const maxBehind = time.Minute

// notLeading refuses what only the leader may be asked.
func notLeading() error {
	return core.Errorf(core.Unavailable, "this server does not lead; try another one").Because(pass.NotLeading)
}

// isPassed reports whether a call to a server that follows is handed to the one that leads.
func (a *API) isPassed(rt *call.Route, r *http.Request) bool {
	if a.pass == nil || call.CallerOf(r.Context()) != nil { // a part of another call
		return false
	}
	if r.Method == http.MethodGet {
		// What the audit log always has is asked of the leader, who writes it.
		return ofLeader[rt.Key()] || rt.Audit.When == call.Always || r.Header.Get("Upgrade") != ""
	}
	return !rt.Reads
}

// isForLeader reports whether a caller could not be let in because that takes a write.
func (a *API) isForLeader(r *http.Request, err error) bool {
	if a.pass == nil || core.CodeOf(err) != core.Unavailable || call.CallerOf(r.Context()) != nil {
		return false
	}
	_, between := pass.Of(r)
	return !between
}

// awaitCopy waits until this server's copy has what the caller has written by it, or asks for.
func (a *API) awaitCopy(r *http.Request) error {
	seq := a.wrote.of(callerKey(r))
	if text := r.Header.Get(MinSeqHeader); text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 0 {
			return core.Errorf(core.Invalid, "%s: %q is not the number of an event", MinSeqHeader, text)
		}
		seq = max(seq, n)
	}
	if seq == 0 {
		return nil
	}
	if s := a.Engine.Snapshot(); s != nil && s.Seq() >= seq {
		return nil
	}
	ctx, stop := context.WithTimeout(r.Context(), catchUp)
	defer stop()
	return a.Engine.Copy.Await(ctx, seq)
}

// Wrote notes that a call was carried out by the leader, and is in the state from an event on.
func (a *API) Wrote(r *http.Request, seq int64) { a.wrote.note(callerKey(r), seq) }

// lastWrites are the events that callers have last written by this server.
type lastWrites struct {
	mu  sync.Mutex
	seq map[string]int64
}

// maxWriters bounds how many callers are remembered; then all are forgotten, and may see what is a second old.
const maxWriters = 20_000

func (l *lastWrites) note(key string, seq int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.seq == nil || len(l.seq) >= maxWriters {
		l.seq = map[string]int64{}
	}
	l.seq[key] = max(l.seq[key], seq)
}

func (l *lastWrites) of(key string) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.seq[key]
}

// callerKey names who calls without looking them up.
func callerKey(r *http.Request) string {
	if cred, ok := r.Context().Value(call.PeerKey{}).(*unix.Ucred); ok {
		return "uid " + strconv.FormatUint(uint64(cred.Uid), 10)
	}
	node := ""
	if r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
		node = r.TLS.VerifiedChains[0][0].Subject.CommonName
	}
	return strings.Join([]string{
		node, r.Header.Get(call.PeerHeader), r.Header.Get("Authorization"),
		r.Header.Get("X-Slurm-User-Token"),
	}, "\n")
}
