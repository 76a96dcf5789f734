package simulate

import (
	"bireme.dev/bireme/internal/sim"
)

// ahead reads a trace on a core of its own while the simulation continues behind it. Reading is a tenth of the work.
type ahead struct {
	src     sim.Source
	batches chan batch
	stop    chan struct{}
	over    chan struct{}
	now     batch
	at      int
}

// batch is some jobs and what came after them.
type batch struct {
	jobs []sim.Job
	err  error
}

// aheadBy is how many jobs go from hand to hand at once.
const aheadBy = 1024

func readAhead(src sim.Source) *ahead {
	a := &ahead{src: src, batches: make(chan batch, 4), stop: make(chan struct{}), over: make(chan struct{})}
	go a.read()
	return a
}

func (a *ahead) read() {
	defer close(a.over)
	for {
		b := batch{jobs: make([]sim.Job, 0, aheadBy)}
		for len(b.jobs) < aheadBy && b.err == nil {
			var j *sim.Job
			if j, b.err = a.src.Next(); b.err == nil {
				b.jobs = append(b.jobs, *j)
			}
		}
		select {
		case a.batches <- b:
		case <-a.stop:
			return
		}
		if b.err != nil {
			return
		}
	}
}

// Next returns the next job.
func (a *ahead) Next() (*sim.Job, error) {
	for a.at == len(a.now.jobs) {
		if a.now.err != nil {
			return nil, a.now.err
		}
		a.now, a.at = <-a.batches, 0
	}
	a.at++
	return &a.now.jobs[a.at-1], nil
}

// close ends the reading, and returns when nobody reads any more: what the source counted is then good to look at.
func (a *ahead) close() {
	close(a.stop)
	<-a.over
}
