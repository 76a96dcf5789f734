package sim

import "bireme.dev/bireme/internal/core"

// end is a running job's end to come.
type end struct {
	at    int64 // second of the trace
	run   int64
	job   core.JobID
	alloc *core.Alloc
}

// ends is a heap, the soonest first, then the job that was submitted first.
type ends []end

func (e ends) less(i, j int) bool {
	if e[i].at != e[j].at {
		return e[i].at < e[j].at
	}
	return e[i].job < e[j].job
}

// next is when the soonest end comes.
func (e ends) next() int64 {
	if len(e) == 0 {
		return never
	}
	return e[0].at
}

func (e *ends) push(v end) {
	*e = append(*e, v)
	h := *e
	for i := len(h) - 1; i > 0; {
		up := (i - 1) / 2
		if !h.less(i, up) {
			return
		}
		h[i], h[up] = h[up], h[i]
		i = up
	}
}

func (e *ends) pop() end {
	h := *e
	v, last := h[0], len(h)-1
	h[0], h[last] = h[last], end{}
	h = h[:last]
	*e = h
	for i := 0; ; {
		down := 2*i + 1
		if down >= last {
			return v
		}
		if down+1 < last && h.less(down+1, down) {
			down++
		}
		if !h.less(down, i) {
			return v
		}
		h[i], h[down] = h[down], h[i]
		i = down
	}
}

// rows is every job from the first that has not been told on, by id: ids are given one after the other.
type rows struct {
	first core.JobID // of list[head]
	list  []Row
	head  int
}

func (r *rows) push(id core.JobID, row Row) {
	if r.head == len(r.list) {
		r.list, r.head, r.first = r.list[:0], 0, id
	} else if r.head > 1024 && r.head > len(r.list)/2 { // the front is empty: move up
		r.list = r.list[:copy(r.list, r.list[r.head:])]
		r.head = 0
	}
	core.Assert(r.first+core.JobID(len(r.list)-r.head) == id, "job %d does not follow the one before it", id)
	r.list = append(r.list, row)
}

func (r *rows) at(id core.JobID) *Row { return &r.list[r.head+int(id-r.first)] }

// drain tells what is known from the front on; a job that waits holds back those behind it.
func (r *rows) drain(emit func(*Row) error) error {
	for r.head < len(r.list) && r.list[r.head].Start >= 0 {
		if err := emit(&r.list[r.head]); err != nil {
			return err
		}
		r.head++
		r.first++
	}
	return nil
}

// waiting is the first job that has not started, or nil.
func (r *rows) waiting() *Row {
	if r.head == len(r.list) {
		return nil
	}
	return &r.list[r.head]
}
