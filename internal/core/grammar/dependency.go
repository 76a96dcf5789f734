package grammar

import (
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/taskset"
)

const dependencyForm = "type:job[:job...], joined by ',' (all) or '?' (any); type is after, afterany, afterok, " +
	"afternotok or aftercorr; or singleton"

// maxDependencies bounds the jobs one job may wait for.
const maxDependencies = 1000

// ParseDependency reads --dependency, as Slurm 22.05: items joined by commas, all of which must hold, or by question
// marks, any of which is enough. A bare job number means afterany.
func ParseDependency(s string) (*core.Needs, error) {
	t := &text{what: "dependency", want: dependencyForm, in: s}
	n := &core.Needs{Any: strings.Contains(s, "?")}
	for {
		if err := t.need(n); err != nil {
			return nil, err
		}
		if t.end() {
			return n, nil
		}
		if len(n.Left) >= maxDependencies {
			return nil, t.fail(t.pos, "more than %d jobs to wait for", maxDependencies)
		}
		switch {
		case n.Any && t.take('?'), !n.Any && t.take(','):
		case n.Any && t.peek() == ',':
			return nil, t.fail(t.pos, "',' and '?' cannot be mixed")
		default:
			return nil, t.unexpected()
		}
	}
}

var needKinds = map[string]core.NeedKind{
	"after": core.NeedAfter, "afterany": core.NeedAfterAny, "afterok": core.NeedAfterOK, "afternotok": core.NeedAfterNotOK,
	"aftercorr": core.NeedAfterCorr, "singleton": core.NeedSingleton,
}

// noNeeds are kinds that Slurm knows, or knew, and that are not here, with what to do instead.
var noNeeds = map[string]string{
	"expand":           "a job cannot grow by another job's nodes: submit one of the size you need",
	"afterburstbuffer": "there are no burst buffers: use afterok or afterany",
}

// need reads one item, which may name several jobs.
func (t *text) need(n *core.Needs) error {
	kind := core.NeedAfterAny
	if start := t.pos; isLetter(t.peek()) {
		for isLetter(t.peek()) {
			t.pos++
		}
		var ok bool
		word := strings.ToLower(t.in[start:t.pos])
		if why := noNeeds[word]; why != "" {
			return t.fail(start, "%s: %s", word, why)
		}
		if kind, ok = needKinds[word]; !ok {
			return t.fail(start, "%q is not a kind of dependency", t.in[start:t.pos])
		}
		if kind == core.NeedSingleton {
			n.Left = append(n.Left, core.Need{Kind: kind})
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
		x := core.Need{Kind: kind, Job: core.JobID(id)}
		if t.take('_') {
			task, err := t.number(taskset.MaxIndex)
			if err != nil {
				return err
			}
			x.Task = int32(task) + 1
		}
		if kind == core.NeedAfter && t.take('+') {
			minutes, err := t.number(1 << 24)
			if err != nil {
				return err
			}
			x.Delay = core.Seconds(minutes) * 60
		}
		n.Left = append(n.Left, x)
		if !t.take(':') {
			return nil
		}
		if len(n.Left) >= maxDependencies {
			return t.fail(t.pos, "more than %d jobs to wait for", maxDependencies)
		}
	}
}
