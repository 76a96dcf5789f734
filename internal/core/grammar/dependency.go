package grammar

import (
	"slices"
	"strings"

	"bireme.dev/bireme/internal/core/taskset"
)

const dependencyForm = "type:job[:job...], joined by ',' (all) or '?' (any); type is after, afterany, afterok, " +
	"afternotok or aftercorr; or singleton"

// maxDependencies bounds the jobs one job may wait for.
const maxDependencies = 1000

// Dependency is what a job waits for: all of Items, or with Any one of them.
type Dependency struct {
	Any   bool
	Items []DependencyItem
}

// DependencyItem is one thing to wait for.
type DependencyItem struct {
	Kind  string // after, afterany, afterok, afternotok, aftercorr or singleton
	Job   int64  // the job or array; 0 for singleton
	Task  int32  // of the array, plus one; 0: all of it
	Delay int64  // seconds after its start
}

// ParseDependency reads --dependency, as Slurm 22.05: items joined by commas, all of which must hold, or by question
// marks, any of which is enough. A bare job number means afterany.
func ParseDependency(s string) (*Dependency, error) {
	t := &text{what: "dependency", want: dependencyForm, in: s}
	d := &Dependency{Any: strings.Contains(s, "?")}
	for {
		if err := t.dependency(d); err != nil {
			return nil, err
		}
		if t.end() {
			return d, nil
		}
		if len(d.Items) >= maxDependencies {
			return nil, t.fail(t.pos, "more than %d jobs to wait for", maxDependencies)
		}
		switch {
		case d.Any && t.take('?'), !d.Any && t.take(','):
		case d.Any && t.peek() == ',':
			return nil, t.fail(t.pos, "',' and '?' cannot be mixed")
		default:
			return nil, t.unexpected()
		}
	}
}

var dependencyKinds = []string{"after", "afterany", "afterok", "afternotok", "aftercorr", "singleton"}

// noDependencies are kinds that Slurm knows, or knew, and that are not here, with what to do instead.
var noDependencies = map[string]string{
	"expand":           "a job cannot grow by another job's nodes: submit one of the size you need",
	"afterburstbuffer": "there are no burst buffers: use afterok or afterany",
}

// dependency reads one item, which may name several jobs.
func (t *text) dependency(d *Dependency) error {
	kind := "afterany"
	if start := t.pos; isLetter(t.peek()) {
		for isLetter(t.peek()) {
			t.pos++
		}
		word := strings.ToLower(t.in[start:t.pos])
		if why := noDependencies[word]; why != "" {
			return t.fail(start, "%s: %s", word, why)
		}
		if !slices.Contains(dependencyKinds, word) {
			return t.fail(start, "%q is not a kind of dependency", t.in[start:t.pos])
		}
		if kind = word; kind == "singleton" {
			d.Items = append(d.Items, DependencyItem{Kind: kind})
			return nil
		}
		if !t.take(':') {
			return t.unexpected()
		}
	}
	for {
		start := t.pos
		id, err := t.number(1 << 40)
		if err != nil {
			return err
		}
		if id == 0 {
			return t.fail(start, "job ids start at 1")
		}
		x := DependencyItem{Kind: kind, Job: id}
		if t.take('_') {
			task, err := t.number(taskset.MaxIndex)
			if err != nil {
				return err
			}
			x.Task = int32(task) + 1
		}
		if kind == "after" && t.take('+') {
			minutes, err := t.number(1 << 24)
			if err != nil {
				return err
			}
			x.Delay = minutes * 60
		}
		d.Items = append(d.Items, x)
		if !t.take(':') {
			return nil
		}
		if len(d.Items) >= maxDependencies {
			return t.fail(t.pos, "more than %d jobs to wait for", maxDependencies)
		}
	}
}
