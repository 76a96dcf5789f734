package sim

import (
	"cmp"
	"slices"
	"sort"
)

// reference is an independent simulator of one resource that shares nothing with the production rules: the five rules
// written down plainly. Jobs are named by their place in the trace.
type reference struct {
	rule    string
	jobs    []Job
	starts  []int64
	free    int64
	queue   []int // waiting, in queue order
	running []int // by expected end
	prof    profile
}

// referenceStarts gives the start of every job.
func referenceStarts(rule string, procs int64, jobs []Job) []int64 {
	r := &reference{rule: rule, jobs: jobs, starts: make([]int64, len(jobs)), free: procs, prof: profile{{0, procs}}}
	var ends []int // running, by actual end
	endOf := func(i int) int64 { return r.starts[i] + jobs[i].Run }
	for next := 0; next < len(jobs) || len(ends) > 0 || len(r.queue) > 0; {
		now := never
		if next < len(jobs) {
			now = jobs[next].Submit
		}
		if len(ends) > 0 {
			now = min(now, endOf(ends[0]))
		}
		if rule == "conservative" { // a promise may come due when nothing else happens
			for _, i := range r.queue {
				now = min(now, r.starts[i])
			}
		}
		r.prof.forget(now)
		early := false
		for ; len(ends) > 0 && endOf(ends[0]) == now; ends = ends[1:] {
			i := ends[0]
			r.free += jobs[i].Procs
			at := slices.Index(r.running, i)
			r.running = slices.Delete(r.running, at, at+1)
			if r.due(i) > now {
				early = true
				r.prof.add(now, r.due(i), jobs[i].Procs)
			}
		}
		if early && rule == "conservative" {
			r.compress(now)
		}
		for ; next < len(jobs) && jobs[next].Submit == now; next++ {
			r.arrive(now, next)
		}
		for _, i := range r.pass(now) {
			r.queue = slices.Delete(r.queue, slices.Index(r.queue, i), slices.Index(r.queue, i)+1)
			at := sort.Search(len(r.running), func(k int) bool { return r.due(r.running[k]) > r.due(i) })
			r.running = slices.Insert(r.running, at, i)
			at = sort.Search(len(ends), func(k int) bool { return endOf(ends[k]) > endOf(i) })
			ends = slices.Insert(ends, at, i)
		}
	}
	return r.starts
}

// due is when a job that runs, or is promised its start, should end by its estimate.
func (r *reference) due(i int) int64 { return r.starts[i] + r.jobs[i].Estimate }

func (r *reference) shorter(a, b int) int {
	return cmp.Or(cmp.Compare(r.jobs[a].Estimate, r.jobs[b].Estimate), cmp.Compare(a, b))
}

func (r *reference) arrive(now int64, i int) {
	at := len(r.queue)
	switch r.rule {
	case "sjf-easy":
		at, _ = slices.BinarySearchFunc(r.queue, i, r.shorter)
	case "conservative":
		r.promise(now, i)
	}
	r.queue = slices.Insert(r.queue, at, i)
}

// promise gives a job the earliest start that disturbs no promise.
func (r *reference) promise(now int64, i int) {
	j := &r.jobs[i]
	r.starts[i] = r.prof.earliest(now, j.Estimate, j.Procs)
	r.prof.add(r.starts[i], r.due(i), -j.Procs)
}

// compress promises again, in queue order, after resources came back earlier than expected.
func (r *reference) compress(now int64) {
	for _, i := range r.queue {
		r.prof.add(r.starts[i], r.due(i), r.jobs[i].Procs)
		r.promise(now, i)
	}
}

// pass gives what starts now, with r.free and r.starts set.
func (r *reference) pass(now int64) (out []int) {
	start := func(i int) {
		r.starts[i] = now
		r.free -= r.jobs[i].Procs
		out = append(out, i)
	}
	if r.rule == "conservative" {
		for _, i := range r.queue {
			if r.starts[i] == now {
				start(i)
			}
		}
		return out
	}
	head := 0
	for head < len(r.queue) && r.jobs[r.queue[head]].Procs <= r.free {
		start(r.queue[head])
		head++
	}
	if head == len(r.queue) || r.rule == "fcfs" {
		return out
	}
	shadow, extra := r.shadow(r.jobs[r.queue[head]].Procs, out)
	rest := r.queue[head+1:]
	if r.rule == "easy-sjbf" {
		rest = slices.Clone(rest)
		slices.SortFunc(rest, r.shorter)
	}
	for _, i := range rest {
		j := &r.jobs[i]
		switch {
		case r.free == 0:
			return out
		case j.Procs > r.free:
		case now+j.Estimate <= shadow:
			start(i)
		case j.Procs <= extra:
			extra -= j.Procs
			start(i)
		}
	}
	return out
}

// shadow is when so many processors will be free, by estimates, and how many more will be then.
func (r *reference) shadow(procs int64, started []int) (at, extra int64) {
	all := append(slices.Clone(r.running), started...)
	slices.SortFunc(all, func(a, b int) int { return cmp.Compare(r.due(a), r.due(b)) })
	free := r.free
	for k, i := range all {
		free += r.jobs[i].Procs
		if free >= procs && (k+1 == len(all) || r.due(all[k+1]) > r.due(i)) {
			return r.due(i), free - procs
		}
	}
	panic("the machine is too small")
}

// profile is what is free from each moment on, until the next.
type profile []struct{ at, free int64 }

// cut makes a step at a moment and gives its place.
func (p *profile) cut(at int64) int {
	k := sort.Search(len(*p), func(k int) bool { return (*p)[k].at > at }) - 1
	if (*p)[k].at != at {
		k++
		*p = slices.Insert(*p, k, struct{ at, free int64 }{at, (*p)[k-1].free})
	}
	return k
}

func (p *profile) add(from, to, procs int64) {
	a := p.cut(from)
	b := p.cut(to)
	for k := a; k < b; k++ {
		(*p)[k].free += procs
	}
	for _, k := range []int{b, a} { // steps that are none any more
		if k > 0 && (*p)[k].free == (*p)[k-1].free {
			*p = slices.Delete(*p, k, k+1)
		}
	}
}

// forget drops what is past.
func (p *profile) forget(now int64) {
	k := sort.Search(len(*p), func(k int) bool { return (*p)[k].at > now }) - 1
	if k > 0 {
		*p = slices.Delete(*p, 0, k)
		(*p)[0].at = now
	}
}

func (p *profile) earliest(now, length, procs int64) int64 {
	start, open := now, false
	for k := range *p {
		s := (*p)[k]
		if s.free < procs {
			open = false
			continue
		}
		if !open {
			start, open = max(now, s.at), true
		}
		if k+1 == len(*p) || (*p)[k+1].at >= start+length {
			return start
		}
	}
	panic("the machine is too small")
}
