package audit

import (
	"sync"
	"time"

	"bireme.dev/bireme/internal/core"
)

// SignIns remembers who has come from where with what, so that the first call of a day tells and the thousands after it
// do not.
type SignIns struct {
	mu    sync.Mutex
	seen  map[SignIn]struct{}
	since time.Time
}

// SignIn is a caller as signing in tells them apart.
type SignIn struct {
	User  core.UserName
	Token string
	Node  core.NodeName
	Addr  string
}

// Bounds of SignIns.
const (
	signWindow = 24 * time.Hour
	maxSigned  = 20_000 // more callers than that are told more often
)

// First reports whether a caller has not been seen in this window.
func (s *SignIns) First(who SignIn, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.since) >= signWindow || len(s.seen) >= maxSigned {
		s.seen, s.since = map[SignIn]struct{}{}, now
	}
	if _, ok := s.seen[who]; ok {
		return false
	}
	s.seen[who] = struct{}{}
	return true
}
