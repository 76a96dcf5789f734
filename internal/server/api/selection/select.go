package selection

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

// JobRef names a job as users do: "12", or "12_3" for a task; "12_[1-5]" where several may be meant; "12+1" for a
// component of a het job, all of which "12" stands for.
type JobRef struct {
	Id    core.JobID
	Tasks taskset.Set // empty: the job or the whole array
	Part  bool        // just this component
}

// maxTasks bounds the tasks one reference names.
const maxTasks = 4_000_001

func ParseRef(text string) (JobRef, error) {
	head, tail, task := strings.Cut(text, "_")
	head, offset, part := strings.Cut(head, "+")
	n, err := strconv.ParseInt(head, 10, 64)
	if err == nil && part {
		var k uint64
		k, err = strconv.ParseUint(offset, 10, 16)
		n += int64(k) // their ids follow each other
	}
	if err != nil || n <= 0 || part && task {
		return JobRef{}, core.Errorf(core.Invalid, "%q is not a job id", text).Because("invalid_job_id")
	}
	ref := JobRef{Id: core.JobID(n), Part: part}
	if !task {
		return ref, nil
	}
	tail = strings.TrimSuffix(strings.TrimPrefix(tail, "["), "]")
	tail, _, _ = strings.Cut(tail, "%")
	set, err := taskset.Parse(tail)
	if err != nil || set.Len() == 0 || set.Len() > maxTasks {
		return JobRef{}, core.Errorf(core.Invalid, "%q is not a job id", text).Because("invalid_job_id")
	}
	ref.Tasks = set
	return ref, nil
}

// is reports whether j is what the reference names.
func (f JobRef) is(j *core.Job) bool {
	if f.Tasks.Empty() {
		if x := j.Spec.Extra; x != nil && x.Het != nil && !f.Part && x.Het.Lead == f.Id {
			return true
		}
		return j.ID == f.Id || j.Array != nil && j.Array.Base == f.Id
	}
	if j.Array == nil || j.Array.Base != f.Id {
		return false
	}
	if !j.IsArray() {
		return f.Tasks.Contains(int(j.Array.Task))
	}
	return !f.Tasks.Intersect(j.Array.Tasks).Empty()
}

// Selection is what a listing or a cancel asks for. Empty parts do not restrict.
type Selection struct {
	Refs       []JobRef
	index      *refIndex // of many refs
	Users      filter[core.UserName]
	Projects   filter[core.ProjectName]
	Partitions filter[core.PartitionName]
	States     []core.JobState
	Completing bool // "CG" was among the states
	Names      filter[string]
	nodes      filter[core.NodeName]
	Runs       filter[string]
	QOS        filter[core.QOSName]
	Resvs      filter[string] // reservations asked for
	Wckeys     filter[string]

	History      bool
	Brief        bool
	Since, Until core.Time
	Recent       bool // Since is as the site keeps ended jobs in sight
	Limit        int
	Newest       bool       // newest first
	After        core.JobID // the page that follows this job
	// LeaveDeleted: without jobs of runs that somebody deleted.
	LeaveDeleted bool
}

// SplitWords collects a parameter that may be repeated or hold commas.
func SplitWords(list []string) []string {
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

func ParseSelection(r *http.Request) (*Selection, error) {
	q := r.URL.Query()
	if err := checkQuery(q); err != nil {
		return nil, err
	}
	s := &Selection{
		Users: WordFilter[core.UserName](q["user"]), Projects: WordFilter[core.ProjectName](q["project"]),
		Partitions: WordFilter[core.PartitionName](q["partition"]), Names: WordFilter[string](q["name"]),
		Runs:  WordFilter[string](q["run"]),
		Brief: q.Get("view") == "brief", History: IsSet(q.Get("history")), Newest: IsSet(q.Get("newest")),
		Recent:       IsSet(q.Get("recent")),
		LeaveDeleted: IsSet(q.Get("leave_deleted")),
	}
	if err := s.ParseStates(SplitWords(q["state"])); err != nil {
		return nil, err
	}
	if err := s.ParseNodes(q["node"]); err != nil {
		return nil, err
	}
	if err := s.parseRefs(q["id"]); err != nil {
		return nil, err
	}
	for key, at := range map[string]*core.Time{"since": &s.Since, "until": &s.Until} {
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
		s.Limit = n
	}
	var err error
	s.After, err = ParseAfter(q)
	return s, err
}

// ParseAfter reads where a page begins.
func ParseAfter(q url.Values) (core.JobID, error) {
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

// Beyond reports whether a job belongs to the page after s.after.
func (s *Selection) Beyond(j *core.Job) bool {
	return s.After == 0 || (j.ID > s.After) != s.Newest && j.ID != s.After
}

// Order compares jobs as the answer lists them.
func (s *Selection) Order(x, y *core.Job) int {
	if s.Newest {
		return cmp.Compare(y.ID, x.ID)
	}
	return cmp.Compare(x.ID, y.ID)
}

// parseRefs reads the jobs that are named.
func (s *Selection) parseRefs(list []string) error {
	if err := CheckRefs(list); err != nil {
		return err
	}
	budget := RefBudget{}
	for _, id := range SplitRefs(list) {
		ref, err := budget.Parse(id)
		if err != nil {
			return err
		}
		s.Refs = append(s.Refs, ref)
	}
	if len(s.Refs) > fewWords {
		s.index = IndexRefs(s.Refs)
	}
	return nil
}

func IsSet(text string) bool { return text == "1" || text == "true" || text == "yes" }

// SplitRefs splits at commas that are not within brackets.
func SplitRefs(list []string) []string {
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

func (s *Selection) ParseStates(list []string) error {
	for _, w := range list {
		switch strings.ToUpper(w) {
		case "ALL":
			continue
		case "CG", "COMPLETING":
			s.Completing = true
			continue
		case "CF", "CONFIGURING", "SO", "STAGE_OUT", "SI", "SIGNALING", "RV", "REVOKED", "RS", "RESIZING", "ST", "STOPPED",
			"SE", "SPECIAL_EXIT", "RF", "REQUEUE_FED", "RH", "REQUEUE_HOLD", "RQ", "REQUEUED", "RD", "RESV_DEL_HOLD":
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

func (s *Selection) ParseNodes(list []string) error {
	names, err := expandNodes(list)
	s.nodes = filterOf(names)
	return err
}

func (s *Selection) addState(st core.JobState) {
	if !slices.Contains(s.States, st) {
		s.States = append(s.States, st)
	}
}

// isNamed reports whether a job is one of those named, where any are.
func (s *Selection) isNamed(j *core.Job) bool {
	if s.index != nil {
		return s.index.any(j)
	}
	return len(s.Refs) == 0 || slices.ContainsFunc(s.Refs, func(f JobRef) bool { return f.is(j) })
}

// Match reports whether a job is wanted.
func (s *Selection) Match(j *core.Job) bool {
	if !s.isNamed(j) {
		return false
	}
	spec := j.Spec
	return s.matchUser(spec) && s.Projects.Passes(spec.Project) && s.Names.Passes(spec.Name) && s.Runs.Passes(spec.Run) &&
		s.QOS.Passes(spec.QOS) &&
		s.Resvs.Passes(spec.More().Reservation) && s.Wckeys.Passes(spec.More().WCKey) && s.MatchState(j) &&
		s.matchPartition(j) && s.matchNode(j) && s.matchTime(j)
}

// matchUser lets a user be named by name or number.
func (s *Selection) matchUser(spec *core.Spec) bool {
	return s.Users.Passes(spec.User) || s.Users.has(core.UserName(strconv.FormatUint(uint64(spec.UID), 10)))
}

func (s *Selection) MatchState(j *core.Job) bool {
	if len(s.States) == 0 && !s.Completing {
		return true
	}
	if j.Flags.Has(core.Completing) && s.Completing {
		return true
	}
	return slices.Contains(s.States, j.State)
}

func (s *Selection) matchPartition(j *core.Job) bool {
	if s.Partitions.empty() {
		return true
	}
	if j.Alloc != nil {
		return s.Partitions.has(j.Alloc.Partition)
	}
	for p := range j.Spec.Partition.All() {
		if s.Partitions.has(p) {
			return true
		}
	}
	return false
}

func (s *Selection) matchNode(j *core.Job) bool {
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
func (s *Selection) matchTime(j *core.Job) bool {
	if s.Until != 0 && j.Submit >= s.Until {
		return false
	}
	return s.Since == 0 || j.End == 0 || !j.State.Final() || j.End >= s.Since
}

func (s *Selection) Restricts() bool {
	return len(s.Users.List)+len(s.Projects.List)+len(s.Partitions.List)+len(s.Names.List)+len(s.Runs.List)+
		len(s.QOS.List)+
		len(s.Resvs.List)+len(s.Wckeys.List)+len(s.States)+len(s.nodes.List) > 0
}
