package agent

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	"bireme.dev/bireme/internal/agent/hardware"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/wire"
)

// fences say after how much silence jobs are killed. They hold through a restart of the agent: the server counts on
// them when it starts a job again elsewhere.
type fences struct {
	All  time.Duration                `json:"all,omitempty"`
	Jobs map[core.JobID]time.Duration `json:"jobs,omitempty"`
}

func (f *fences) set(all time.Duration, jobs []wire.JobFence) {
	f.All, f.Jobs = all, nil
	for _, j := range jobs {
		if f.Jobs == nil {
			f.Jobs = map[core.JobID]time.Duration{}
		}
		f.Jobs[j.Job] = j.Fence
	}
}

// of is a job's fence; 0: none.
func (f fences) of(job core.JobID) time.Duration {
	if d, own := f.Jobs[job]; own {
		return d
	}
	return f.All
}

// passed reports whether a job's fence has passed with so much silence.
func (f fences) passed(job core.JobID, silence time.Duration) bool {
	d := f.of(job)
	return d > 0 && silence > d
}

func (f fences) any() bool { return f.All > 0 || len(f.Jobs) > 0 }

// least is the shortest fence, or 0.
func (f fences) least() time.Duration {
	d := f.All
	for _, j := range f.Jobs {
		if j > 0 && (d == 0 || j < d) {
			d = j
		}
	}
	return d
}

// fenceRecord is what the agent keeps on disk while a fence is set.
type fenceRecord struct {
	Boot   string        `json:"boot"` // the clock below is of this boot
	Heard  time.Duration `json:"heard"`
	Fences fences        `json:"fences"`
}

func (a *Agent) fenceFile() string { return filepath.Join(a.opt.Dir, "fence.json") }

// rememberFence writes when the server was last heard. Without a fence nothing is kept.
func (a *Agent) rememberFence() {
	a.writing.Lock() // the last to write knows the most
	defer a.writing.Unlock()
	a.mu.Lock()
	rec := fenceRecord{Boot: hardware.BootID(a.root), Heard: a.lease, Fences: a.fences}
	a.mu.Unlock()
	if !rec.Fences.any() {
		_ = os.Remove(a.fenceFile()) // mostly not there
		return
	}
	b, err := json.Marshal(rec)
	if err == nil {
		// Not synced: it must outlive the agent, not the machine.
		tmp := a.fenceFile() + ".new"
		if err = os.WriteFile(tmp, b, 0o600); err == nil {
			err = os.Rename(tmp, a.fenceFile())
		}
	}
	if err != nil {
		a.log.Warn("a restart of this agent would forget the fence", "err", err)
	}
}

// recallFence takes up what an agent before this one knew.
func (a *Agent) recallFence() {
	a.last = hardware.BootTime()
	a.lease = a.last
	b, err := os.ReadFile(a.fenceFile())
	if err != nil {
		return
	}
	var rec fenceRecord
	if json.Unmarshal(b, &rec) != nil || rec.Boot != hardware.BootID(a.root) {
		return
	}
	a.fences, a.lease = rec.Fences, min(rec.Heard, a.lease)
}

// fenceJob sets the fence of one job, and forgets those of jobs that are gone.
func (a *Agent) fenceJob(job core.JobID, fence time.Duration) {
	running := a.ledger.jobs()
	a.mu.Lock()
	jobs := map[core.JobID]time.Duration{job: fence} // a new map: the old one may be in use
	for j, d := range a.fences.Jobs {
		if running[j] {
			jobs[j] = d
		}
	}
	a.fences.Jobs = jobs
	a.mu.Unlock()
	a.rememberFence() // before the job runs
	poke(a.refence)
}

// renewFence counts silence from a moment.
func (a *Agent) renewFence(sent time.Duration) {
	a.mu.Lock()
	a.lease = max(a.lease, sent)
	a.mu.Unlock()
	poke(a.refence)
}

// watchFences kills what runs behind a fence after too long a silence.
func (a *Agent) watchFences(ctx context.Context) error {
	select {
	case <-a.ledger.known: // before that nobody knows what runs
	case <-ctx.Done():
		return nil
	}
	var noted time.Duration // beginning of the silence that was recorded
	for {
		a.mu.Lock()
		f, last := a.fences, a.lease
		a.mu.Unlock()
		wait := time.Hour // without a fence there is nothing to watch
		if least := f.least(); least > 0 {
			wait = max(min(time.Second, least/4), 5*time.Millisecond)
			if last != noted {
				a.rememberFence()
				noted = last
			}
			if silence := hardware.BootTime() - last; silence > least {
				a.ledger.fence(silence, func(job core.JobID) bool { return f.passed(job, silence) })
			}
		}
		t := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			t.Stop()
			return nil
		case <-a.refence:
		case <-t.C:
		}
		t.Stop()
	}
}
