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
	index      *refIndex // of many refs
	users      filter[core.UserName]
	projects   filter[core.ProjectName]
	partitions filter[core.PartitionName]
	states     []core.JobState
	completing bool // "CG" was among the states
	names      filter[string]
	nodes      filter[core.NodeName]
	runs       filter[string]
	qos        filter[core.QOSName]
	resvs      filter[string] // reservations asked for
	wckeys     filter[string]

	history      bool
	brief        bool
	since, until core.Time
	limit        int
	newest       bool       // newest first
	after        core.JobID // the page that follows this job
}

// splitWords collects a parameter that may be repeated or hold commas.
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
	if err := checkQuery(q); err != nil {
		return nil, err
	}
	s := &selection{
		users: wordFilter[core.UserName](q["user"]), projects: wordFilter[core.ProjectName](q["project"]),
		partitions: wordFilter[core.PartitionName](q["partition"]), names: wordFilter[string](q["name"]), runs: wordFilter[string](q["run"]),
		brief: q.Get("view") == "brief", history: isSet(q.Get("history")), newest: isSet(q.Get("newest")),
	}
	if err := s.parseStates(splitWords(q["state"])); err != nil {
		return nil, err
	}
	if err := s.parseNodes(q["node"]); err != nil {
		return nil, err
	}
	if err := s.parseRefs(q["id"]); err != nil {
		return nil, err
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

// parseRefs reads the jobs that are named.
func (s *selection) parseRefs(list []string) error {
	if err := checkRefs(list); err != nil {
		return err
	}
	budget := refBudget{}
	for _, id := range splitRefs(list) {
		ref, err := budget.parse(id)
		if err != nil {
			return err
		}
		s.refs = append(s.refs, ref)
	}
	if len(s.refs) > fewWords {
		s.index = indexRefs(s.refs)
	}
	return nil
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
			s.addState(noState) // Slurm knows them; nothing here is ever in them
			continue
		}
		st, ok := core.ParseJobState(w)
		if !ok {
			return core.Errorf(core.Invalid, "%q is not a job state", w).Because("invalid_job_state")
		}
		s.addState(st)
	}
	return nil
}

// noState is a state no job has.
const noState core.JobState = 255

func (s *selection) parseNodes(list []string) error {
	names, err := expandNodes(list)
	s.nodes = filterOf(names)
	return err
}

func (s *selection) addState(st core.JobState) {
	if !slices.Contains(s.states, st) {
		s.states = append(s.states, st)
	}
}

// isNamed tells whether a job is one of those named, where any are.
func (s *selection) isNamed(j *core.Job) bool {
	if s.index != nil {
		return s.index.any(j)
	}
	return len(s.refs) == 0 || slices.ContainsFunc(s.refs, func(f jobRef) bool { return f.is(j) })
}

// match tells whether a job is wanted.
func (s *selection) match(j *core.Job) bool {
	if !s.isNamed(j) {
		return false
	}
	spec := j.Spec
	return s.matchUser(spec) && s.projects.passes(spec.Project) && s.names.passes(spec.Name) && s.runs.passes(spec.Run) && s.qos.passes(spec.QOS) &&
		s.resvs.passes(spec.More().Reservation) && s.wckeys.passes(spec.More().WCKey) && s.matchState(j) && s.matchPartition(j) && s.matchNode(j) && s.matchTime(j)
}

// matchUser lets a user be named by name or number.
func (s *selection) matchUser(spec *core.Spec) bool {
	return s.users.passes(spec.User) || s.users.has(core.UserName(strconv.FormatUint(uint64(spec.UID), 10)))
}

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
	if s.partitions.empty() {
		return true
	}
	if j.Alloc != nil {
		return s.partitions.has(j.Alloc.Partition)
	}
	for p := range strings.SplitSeq(string(j.Spec.Partition), ",") {
		if s.partitions.has(core.PartitionName(p)) {
			return true
		}
	}
	return false
}

func (s *selection) matchNode(j *core.Job) bool {
	if s.nodes.empty() {
		return true
	}
	if j.Alloc == nil {
		return false
	}
	for i := range j.Alloc.Nodes {
		if s.nodes.has(j.Alloc.Nodes[i].Node) {
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
