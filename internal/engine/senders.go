package engine

import (
	"sync"
	"time"

	"bireme.dev/bireme/internal/core"
)

// senders bounds what each user sends: a share of the inbox, a number of trials that wait, and nothing for a while
// after a command on which the server failed.
type senders struct {
	now   func() time.Time
	share int // commands of one user that may wait in the inbox

	mu      sync.Mutex
	queued  map[core.UserName]int       // commands of each user in the inbox
	trying  map[core.UserName]int       // trials of each user that wait
	failed  map[core.UserName]time.Time // users whose last trial failed: when they may try again
	blocked map[sender]blockedSender
}

func newSenders(now func() time.Time, inbox int) senders {
	return senders{
		now: now, share: max(1, inbox/4), queued: map[core.UserName]int{}, trying: map[core.UserName]int{},
		failed: map[core.UserName]time.Time{}, blocked: map[sender]blockedSender{},
	}
}

// sender is a user by one of the two ways into the engine.
type sender struct {
	user   core.UserName
	urgent bool
}

// blockedSender is until when nothing is taken of a sender, and how often that was so.
type blockedSender struct {
	until time.Time
	times int
}

// enqueued counts a command of a user that goes into the inbox, or refuses it. isFull is set if that is for lack of
// room.
func (s *senders) enqueued(user core.UserName) (isFull bool, err error) {
	if user == "" {
		return false, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.queued[user] >= s.share {
		return true, core.Errorf(core.Exhausted, "%s has too many requests waiting; try again", user)
	}
	if err := s.checkBlocked(sender{user: user}); err != nil {
		return false, err
	}
	s.queued[user]++
	return false, nil
}

// dequeued counts a command of a user out of the inbox.
func (s *senders) dequeued(user core.UserName) {
	if user == "" {
		return
	}
	s.mu.Lock()
	if s.queued[user]--; s.queued[user] <= 0 {
		delete(s.queued, user)
	}
	s.mu.Unlock()
}

// checkUrgent refuses an exit or a cancel of a user who is blocked.
func (s *senders) checkUrgent(user core.UserName) error {
	if user == "" {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.checkBlocked(sender{user, true})
}

// block takes no commands of a sender for a while, longer each time: to load the state again costs everybody.
func (s *senders) block(from sender) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.blocked[from]
	b.times++
	b.until = s.now().Add(min(5*time.Second<<min(b.times, 10), time.Hour))
	s.blocked[from] = b
}

// checkBlocked refuses a sender whose commands made the state fail. The caller holds mu.
func (s *senders) checkBlocked(from sender) error {
	if len(s.blocked) == 0 {
		return nil
	}
	b, ok := s.blocked[from]
	if !ok || !s.now().Before(b.until) {
		return nil
	}
	return core.Errorf(core.Exhausted,
		"the server failed on the last command of %s and takes none of this kind before %s; the fault is in its log",
		from.user, b.until.UTC().Format(time.RFC3339)).Because("fault")
}

// beginTrial counts a trial of a user that waits for its answer, or refuses it. perUser is the most of one user; 0: any
// number.
func (s *senders) beginTrial(by *core.Identity, perUser int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if perUser > 0 && !by.Admin && s.trying[by.User] >= perUser {
		return core.Errorf(core.Exhausted,
			"%s has %d jobs being tried (--test-only); the limit is %d (limits.trials_per_user); try again", by.User,
			s.trying[by.User], perUser).Because("trials_per_user")
	}
	if until := s.failed[by.User]; !until.IsZero() && s.now().Before(until) {
		return core.Errorf(core.Exhausted, "the server failed on the last job that %s tried; it tries no other before %s",
			by.User, until.UTC().Format(time.RFC3339)).Because("fault")
	}
	total := 0
	for _, n := range s.trying {
		total += n
	}
	if total >= maxTrials {
		return core.Errorf(core.Exhausted, "%d jobs are being tried; try again", total).Because("trials")
	}
	s.trying[by.User]++
	return nil
}

// endTrial counts a trial that no longer waits.
func (s *senders) endTrial(user core.UserName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.trying[user]--; s.trying[user] <= 0 {
		delete(s.trying, user)
	}
}

// trialFailed has a user on whose trial the server failed try nothing for a while.
func (s *senders) trialFailed(user core.UserName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.failed) > 10_000 {
		clear(s.failed)
	}
	s.failed[user] = s.now().Add(time.Minute)
}
