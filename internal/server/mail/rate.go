package mail

import (
	"time"

	"bireme.dev/bireme/internal/core"
)

// rate counts the messages about one user's jobs in the hour that began with the first of them.
type rate struct {
	from time.Time
	sent int64
}

// allow reports whether one more message about a user's jobs may go; last: it is the one that says that no more will.
// Its caller holds the lock.
func (s *Sender) allow(user core.UserName, most int64, now time.Time) (ok, last bool) {
	if most <= 0 || user == "root" {
		return true, false
	}
	r := s.rates[user]
	if r == nil || now.Sub(r.from) >= time.Hour {
		if len(s.rates) >= maxWaiting { // those whose hour is over
			for u, r := range s.rates {
				if now.Sub(r.from) >= time.Hour {
					delete(s.rates, u)
				}
			}
		}
		r = &rate{from: now}
		s.rates[user] = r
	}
	r.sent++
	return r.sent <= most, r.sent == most+1
}
