package api

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/hostlist"
	"bireme.dev/bireme/internal/core/taskset"
)

// jobRef names a job as users do: "12", or "12_3" for a task; "12_[1-5]" where several may be meant; "12+1" for a component
// of a het job, all of which "12" stands for.
type jobRef struct {
	id    core.JobID
	tasks taskset.Set // empty: the job or the whole array
	part  bool        // just this component
}

// maxTasks bounds the tasks one reference names.
const maxTasks = 4_000_001

func parseRef(text string) (jobRef, error) {
	head, tail, task := strings.Cut(text, "_")
	head, offset, part := strings.Cut(head, "+")
	n, err := strconv.ParseInt(head, 10, 64)
	if err == nil && part {
		var k uint64
		k, err = strconv.ParseUint(offset, 10, 16)
		n += int64(k) // their ids follow each other
	}
	if err != nil || n <= 0 || part && task {
		return jobRef{}, core.Errorf(core.Invalid, "%q is not a job id", text).Because("invalid_job_id")
	}
	ref := jobRef{id: core.JobID(n), part: part}
	if !task {
		return ref, nil
	}
	tail = strings.TrimSuffix(strings.TrimPrefix(tail, "["), "]")
	tail, _, _ = strings.Cut(tail, "%")
	set, err := taskset.Parse(tail)
	if err != nil || set.Len() == 0 || set.Len() > maxTasks {
		return jobRef{}, core.Errorf(core.Invalid, "%q is not a job id", text).Because("invalid_job_id")
	}
	ref.tasks = set
	return ref, nil
}

// is tells whether j is what the reference names.
func (f jobRef) is(j *core.Job) bool {
	if f.tasks.Empty() {
		if x := j.Spec.Extra; x != nil && x.Het != nil && !f.part && x.Het.Lead == f.id {
			return true
		}
		return j.ID == f.id || j.Array != nil && j.Array.Base == f.id
	}
	if j.Array == nil || j.Array.Base != f.id {
		return false
	}
	if !j.IsArray() {
		return f.tasks.Contains(int(j.Array.Task))
	}
	return !f.tasks.Intersect(j.Array.Tasks).Empty()
}

// selection is what a listing or a cancel asks for. Empty parts do not restrict.
type selection struct {
	refs       []jobRef
	users      []core.UserName
	projects   []core.ProjectName
	partitions []core.PartitionName
	states     []core.JobState
	completing bool // "CG" was among the states
	names      []string
	nodes      []core.NodeName
	runs       []string
	qos        []core.QOSName
	resvs      []string // reservations asked for
	wckeys     []string

	history      bool
	brief        bool
	since, until core.Time
	limit        int
	newest       bool       // newest first
	after        core.JobID // the page that follows this job
}

// words collects a query parameter that may be repeated or hold commas.
func words(q url.Values, key string) []string { return splitWords(q[key]) }

func splitWords(list []string) []string {
	var out []string
	for _, v := range list {
		for w := range strings.SplitSeq(v, ",") {
			if w = strings.TrimSpace(w); w != "" {
				out = append(out, w)
			}
		}
	}
	return out
}

func typed[T ~string](list []string) []T {
	out := make([]T, 0, len(list))
	for _, w := range list {
		out = append(out, T(w))
	}
	return out
}

func parseSelection(r *http.Request) (*selection, error) {
	q := r.URL.Query()
	s := &selection{
		users: typed[core.UserName](words(q, "user")), projects: typed[core.ProjectName](words(q, "project")),
		partitions: typed[core.PartitionName](words(q, "partition")), names: words(q, "name"), runs: words(q, "run"),
		brief: q.Get("view") == "brief", history: isSet(q.Get("history")), newest: isSet(q.Get("newest")),
	}
	if err := s.parseStates(words(q, "state")); err != nil {
		return nil, err
	}
	if err := s.parseNodes(q["node"]); err != nil {
		return nil, err
	}
	for _, id := range splitRefs(q["id"]) {
		ref, err := parseRef(id)
		if err != nil {
			return nil, err
		}
		s.refs = append(s.refs, ref)
	}
	for key, at := range map[string]*core.Time{"since": &s.since, "until": &s.until} {
		if text := q.Get(key); text != "" {
			t, err := time.Parse(time.RFC3339, text)
			if err != nil {
				return nil, core.Errorf(core.Invalid, "%s: %q is not a time of RFC 3339", key, text)
			}
			*at = core.At(t)
		}
	}
	if text := q.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return nil, core.Errorf(core.Invalid, "limit: %q is not a number", text)
		}
		s.limit = n
	}
	var err error
	s.after, err = parseAfter(q)
	return s, err
}

// parseAfter reads where a page begins.
func parseAfter(q url.Values) (core.JobID, error) {
	text := q.Get("after")
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, core.Errorf(core.Invalid, "after: %q is not a job id", text)
	}
	return core.JobID(n), nil
}

// beyond tells whether a job belongs to the page after s.after.
func (s *selection) beyond(j *core.Job) bool {
	return s.after == 0 || (j.ID > s.after) != s.newest && j.ID != s.after
}

// order compares jobs as the answer lists them.
func (s *selection) order(x, y *core.Job) int {
	if s.newest {
		return cmp.Compare(y.ID, x.ID)
	}
	return cmp.Compare(x.ID, y.ID)
}

func isSet(text string) bool { return text == "1" || text == "true" || text == "yes" }

// splitRefs splits at commas that are not within brackets.
func splitRefs(list []string) []string {
	var out []string
	for _, v := range list {
		depth, start := 0, 0
		for i := 0; i <= len(v); i++ {
			if i == len(v) || v[i] == ',' && depth == 0 {
				if w := strings.TrimSpace(v[start:i]); w != "" {
					out = append(out, w)
				}
				start = i + 1
				continue
			}
			switch v[i] {
			case '[':
				depth++
			case ']':
				depth--
			}
		}
	}
	return out
}

func (s *selection) parseStates(list []string) error {
	for _, w := range list {
		switch strings.ToUpper(w) {
		case "ALL":
			continue
		case "CG", "COMPLETING":
			s.completing = true
			continue
		case "CF", "CONFIGURING", "SO", "STAGE_OUT", "SI", "SIGNALING", "RV", "REVOKED", "RS", "RESIZING", "ST", "STOPPED", "SE", "SPECIAL_EXIT", "RF", "REQUEUE_FED", "RH", "REQUEUE_HOLD", "RQ", "REQUEUED", "RD", "RESV_DEL_HOLD":
			s.states = append(s.states, noState) // Slurm knows them; nothing here is ever in them
			continue
		}
		st, ok := core.ParseJobState(w)
		if !ok {
			return core.Errorf(core.Invalid, "%q is not a job state", w).Because("invalid_job_state")
		}
		s.states = append(s.states, st)
	}
	return nil
}

// noState is a state no job has.
const noState core.JobState = 255

func (s *selection) parseNodes(list []string) error {
	for _, v := range list {
		found, err := hostlist.Expand(v, 1<<20)
		if err != nil {
			return core.Errorf(core.Invalid, "node: %v", err).Because("invalid_node")
		}
		s.nodes = append(s.nodes, typed[core.NodeName](found)...)
	}
	return nil
}

// match tells whether a job is wanted.
func (s *selection) match(j *core.Job) bool {
	if len(s.refs) > 0 && !slices.ContainsFunc(s.refs, func(f jobRef) bool { return f.is(j) }) {
		return false
	}
	spec := j.Spec
	return s.matchUser(spec) && oneOf(s.projects, spec.Project) && oneOf(s.names, spec.Name) && oneOf(s.runs, spec.Run) &&
		oneOf(s.qos, spec.QOS) && oneOf(s.resvs, spec.More().Reservation) && oneOf(s.wckeys, spec.More().WCKey) && s.matchState(j) && s.matchPartition(j) && s.matchNode(j) && s.matchTime(j)
}

// matchUser lets a user be named by name or number.
func (s *selection) matchUser(spec *core.Spec) bool {
	return len(s.users) == 0 || slices.Contains(s.users, spec.User) ||
		slices.Contains(s.users, core.UserName(strconv.FormatUint(uint64(spec.UID), 10)))
}

func oneOf[T comparable](list []T, v T) bool { return len(list) == 0 || slices.Contains(list, v) }

func (s *selection) matchState(j *core.Job) bool {
	if len(s.states) == 0 && !s.completing {
		return true
	}
	if j.Flags.Has(core.Completing) && s.completing {
		return true
	}
	return slices.Contains(s.states, j.State)
}

func (s *selection) matchPartition(j *core.Job) bool {
	if len(s.partitions) == 0 {
		return true
	}
	if j.Alloc != nil {
		return slices.Contains(s.partitions, j.Alloc.Partition)
	}
	for p := range strings.SplitSeq(string(j.Spec.Partition), ",") {
		if slices.Contains(s.partitions, core.PartitionName(p)) {
			return true
		}
	}
	return false
}

func (s *selection) matchNode(j *core.Job) bool {
	if len(s.nodes) == 0 {
		return true
	}
	if j.Alloc == nil {
		return false
	}
	for i := range j.Alloc.Nodes {
		if slices.Contains(s.nodes, j.Alloc.Nodes[i].Node) {
			return true
		}
	}
	return false
}

// matchTime keeps jobs that overlap [since, until), as the store does.
func (s *selection) matchTime(j *core.Job) bool {
	if s.until != 0 && j.Submit >= s.until {
		return false
	}
	return s.since == 0 || j.End == 0 || !j.State.Final() || j.End >= s.since
}
