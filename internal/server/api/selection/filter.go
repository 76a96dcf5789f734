package selection

import (
	"net/url"
	"slices"
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/hostlist"
)

// Bounds of what one listing or cancel may name. A request is matched against every live job, so that its cost is their
// number times what a lookup costs: lists become sets, and all of them together are bounded before they are read.
const (
	maxWords = 10_000 // words in all filters of a request
	maxRefs  = 5_000  // jobs named by their ids
)

// filter is a list of wanted values. An empty one lets everything pass.
type filter[T comparable] struct {
	List []T
	set  map[T]struct{} // of a long list
}

// fewWords is how long a list may be to be searched as it is.
const fewWords = 8

func filterOf[T comparable](list []T) filter[T] {
	f := filter[T]{List: list}
	if len(list) > fewWords {
		f.set = make(map[T]struct{}, len(list))
		for _, v := range list {
			f.set[v] = struct{}{}
		}
	}
	return f
}

// WordFilter makes a filter of a parameter that may be repeated or hold commas.
func WordFilter[T ~string](list []string) filter[T] { return filterOf(typed[T](SplitWords(list))) }

func (f *filter[T]) empty() bool { return len(f.List) == 0 }

// has reports whether v is one of the values.
func (f *filter[T]) has(v T) bool {
	if f.set != nil {
		_, ok := f.set[v]
		return ok
	}
	return slices.Contains(f.List, v)
}

// Passes reports whether the filter lets v through.
func (f *filter[T]) Passes(v T) bool { return f.empty() || f.has(v) }

// CheckWords counts the words of a request's filters without splitting them.
func CheckWords(lists ...[]string) error {
	n := 0
	for _, list := range lists {
		for _, v := range list {
			n += 1 + strings.Count(v, ",")
		}
	}
	if n > maxWords {
		return core.Errorf(core.TooLarge, "%d words in the filters of one request are too many; the limit is %d", n,
			maxWords).Because("too_many_words")
	}
	return nil
}

// CheckFilled refuses lists that were given and name nothing: as filters they would let everything pass.
func CheckFilled(lists ...[]string) error {
	for _, list := range lists {
		if len(list) > 0 && len(SplitWords(list)) == 0 {
			return core.Errorf(core.Invalid, "a filter of the request has empty words only; leave it out to mean all").
				Because("invalid_filter")
		}
	}
	return nil
}

// checkQuery is checkWords for all parameters of a query that filter.
func checkQuery(q url.Values) error {
	return CheckWords(q["user"], q["project"], q["partition"], q["state"], q["name"], q["run"])
}

// expandNodes reads the node lists of one request. The total is bounded before anything is expanded.
func expandNodes(lists []string) ([]core.NodeName, error) {
	total := 0
	for _, v := range lists {
		n, err := hostlist.Count(v, hostlist.MaxRequest)
		if err != nil {
			return nil, core.Errorf(core.Invalid, "node: %v", err).Because("invalid_node")
		}
		if total += n; total > hostlist.MaxRequest {
			return nil, core.Errorf(core.TooLarge, "node: the lists of one request name more than %d nodes",
				hostlist.MaxRequest).Because("invalid_node")
		}
	}
	out := make([]core.NodeName, 0, total)
	for _, v := range lists {
		found, err := hostlist.Expand(v, hostlist.MaxRequest)
		if err != nil {
			return nil, core.Errorf(core.Invalid, "node: %v", err).Because("invalid_node")
		}
		out = append(out, typed[core.NodeName](found)...)
	}
	return out, nil
}

// RefBudget bounds the jobs and tasks that one request names.
type RefBudget struct{ refs, tasks int }

// Parse reads a reference and takes its part of the budget.
func (b *RefBudget) Parse(text string) (JobRef, error) {
	if b.refs++; b.refs > maxRefs {
		return JobRef{}, core.Errorf(core.TooLarge, "more than %d jobs are named in one request", maxRefs).
			Because("too_many_jobs")
	}
	if b.tasks > maxTasks {
		return JobRef{}, errTasks()
	}
	ref, err := ParseRef(text)
	if err != nil {
		return ref, err
	}
	if b.tasks += ref.Tasks.Len(); b.tasks > maxTasks {
		return JobRef{}, errTasks()
	}
	return ref, nil
}

func errTasks() error {
	return core.Errorf(core.TooLarge, "more than %d tasks are named at once", maxTasks).Because("too_many_tasks")
}

// CheckRefs counts job ids without reading them.
func CheckRefs(list []string) error {
	n := 0
	for _, v := range list {
		n += 1 + strings.Count(v, ",")
	}
	if n > maxRefs*4 { // commas within brackets are counted here too; refBudget counts the rest
		return core.Errorf(core.TooLarge, "more than %d jobs are named in one request", maxRefs).Because("too_many_jobs")
	}
	return nil
}
