package api

import (
	"go/ast"
	goparser "go/parser"
	"go/token"
	"go/types"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"bireme.dev/bireme/internal/config"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state"
)

// Who sees what, for each word of PrivateData and each role: the victim's things, in a project that the manager manages.
func TestVisibility(t *testing.T) {
	t.Parallel()
	const all = "admin manager member owner stranger"
	job := &core.Job{ID: 1, Spec: &core.Spec{User: "owner", Project: "physics"}}
	run := &core.Run{User: "owner", Project: "physics"}
	onNode, ofJob := &core.Event{Node: "n1"}, &core.Event{Job: 1, Node: "n1", User: "owner"}
	nouns := map[string]struct {
		sees    func(v *visibility) bool
		public  string                    // who sees it where nothing is private
		private map[config.Private]string // who sees it when this is
	}{
		"job":   {func(v *visibility) bool { return v.seesJob(job) }, all, map[config.Private]string{config.PrivateJobs: "admin manager owner"}},
		"run":   {func(v *visibility) bool { return v.seesRun(run) }, all, map[config.Private]string{config.PrivateJobs: "admin manager owner"}},
		"usage": {func(v *visibility) bool { return v.seesUsage("owner", "physics") }, all, map[config.Private]string{config.PrivateUsage: "admin manager owner"}},
		"user":  {func(v *visibility) bool { return v.seesUser("owner") }, all, map[config.Private]string{config.PrivateUsers: "admin owner"}},
		"member of a project": {
			func(v *visibility) bool { return v.seesMember("physics", "owner") }, all, map[config.Private]string{config.PrivateUsers: "admin manager owner"},
		},
		"project":    {func(v *visibility) bool { return v.seesProject("physics") }, all, map[config.Private]string{config.PrivateAccounts: "admin manager"}},
		"nodes":      {func(v *visibility) bool { return v.seesNodes() }, all, map[config.Private]string{config.PrivateNodes: "admin"}},
		"partitions": {func(v *visibility) bool { return v.seesPartitions() }, all, map[config.Private]string{config.PrivatePartitions: "admin"}},
		"reservation that cannot be used": {
			func(v *visibility) bool { return v.seesReservation(func() bool { return false }) }, all, map[config.Private]string{config.PrivateReservations: "admin"},
		},
		"reservation that can be used": {func(v *visibility) bool { return v.seesReservation(func() bool { return true }) }, all, nil},
		"event of a node": {
			func(v *visibility) bool { return v.seesEvent(onNode) }, all, map[config.Private]string{config.PrivateEvents: "admin", config.PrivateNodes: "admin"},
		},
		"event of a job":            {func(v *visibility) bool { return v.seesEvent(ofJob) }, "admin owner", nil},
		"script and environment":    {func(v *visibility) bool { return v.ownsSecrets("owner") }, "admin owner", nil},
		"things of nobody by name":  {func(v *visibility) bool { return v.isSelf("") }, "", nil},
		"jobs of nobody in nothing": {func(v *visibility) bool { return v.seesWork("", "") }, all, map[config.Private]string{config.PrivateJobs: "admin"}},
	}
	roles := map[string]core.Role{"manager": core.RoleManager, "member": core.RoleUser, "owner": core.RoleUser}
	var every config.Private
	for bit := config.Private(1); bit <= config.PrivateUsers; bit <<= 1 {
		every |= bit
	}
	for name, n := range nouns {
		for bit := config.Private(0); bit <= every; bit++ { // all sets, the empty one too
			want := strings.Fields(n.public)
			for kind, who := range n.private {
				if bit.Has(kind) {
					want = slices.DeleteFunc(want, func(w string) bool { return !slices.Contains(strings.Fields(who), w) })
				}
			}
			for _, who := range strings.Fields(all) {
				v := &visibility{user: core.UserName(who), admin: who == "admin", private: bit}
				v.role = func(p core.ProjectName) core.Role {
					if p == "physics" {
						return roles[who]
					}
					return core.RoleNone
				}
				if who == "stranger" {
					v.user, v.role = "", nil
				}
				if got := n.sees(v); got != slices.Contains(want, who) {
					t.Fatalf("%s, private: %s: %s sees it: %v", name, bit, who, got)
				}
			}
		}
	}
}

// pastViewer are the functions that read records without a viewer, each with the reason why nobody learns of what is not
// theirs by it. A handler that is not here and lists records must take them from the viewer.
var pastViewer = map[string]string{
	"Collect":         "totals without names or ids",
	"countQueue":      "totals by partition and reason, for scrapers that see all jobs",
	"addComponents":   "ids of components; the records are filtered afterwards",
	"endedRefs":       "filtered by the viewer there",
	"ended":           "filtered by the viewer there",
	"groupsOf":        "whether any partition asks for groups",
	"hidJobs":         "what is hidden goes to the audit log, not to the caller",
	"isOver":          "of a job whose log the caller reads",
	"caState":         "administrators only",
	"awaitStart":      "of a job whose log the caller reads",
	"layPart":         "steps of the caller's own job",
	"stepOf":          "of a job that the caller sees",
	"jobMetrics":      "memory of GPUs that the caller's job holds",
	"jobsOf":          "of runs that were filtered",
	"keepCron":        "of jobs that the caller named and sees",
	"mayBeArray":      "which way to search; the search itself uses the viewer",
	"meet":            "administrators only",
	"nodeEvents":      "filtered by the viewer there",
	"nodeView":        "behind viewer.nodes or a fleet that the caller sees",
	"newProject":      "the record the caller made",
	"putUser":         "the record the caller made",
	"run":             "events; filtered when they are sent",
	"runs":            "filtered by the viewer there",
	"settings":        "how many nodes there are and the kinds of their resources",
	"setAside":        "which nodes are reserved; names are shown by the viewer",
	"showInstance":    "hosts of a fleet that the caller sees",
	"showReservation": "sizes of a reservation that the caller sees",
	"stopRun":         "whose a hidden run is goes to the audit log, not to the caller",
	"stepsOf":         "steps of jobs that were filtered",
	"updateProject":   "checked by the viewer there",
	"pastEvents":      "filtered when they are sent",
	"withHistory":     "filtered by the viewer there",
}

// identityFiles find out who calls and whether a session may go on; they answer nothing about others.
var identityFiles = []string{"auth.go", "join.go", "streamset.go", "tokens.go"}

// A new route that lists jobs, users or nodes past the viewer fails here: every answer with such records goes through it.
func TestRecordsComeFromTheViewer(t *testing.T) {
	t.Parallel()
	reads := regexp.MustCompile(`(?i)(snap|snapshot\(\)|\bstore)\.(Job|Jobs|Tasks|OnNode|Node|Nodes|User|Users|Project|Projects|Policy|Reservation|Reservations|` +
		`Partitions|Run|Runs|Steps|Events|NodeEvents|Shares|QOSUsage|Spent)$`)
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	fset := token.NewFileSet()
	for _, file := range files {
		if name := file.Name(); !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || name == "viewer.go" || name == "redact.go" ||
			slices.Contains(identityFiles, name) {
			continue
		}
		f, err := goparser.ParseFile(fset, file.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			ast.Inspect(fn, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok || !reads.MatchString(types.ExprString(call.Fun)) {
					return true
				}
				if pastViewer[fn.Name.Name] == "" {
					t.Errorf("%s: %s reads %s past the viewer",
						fset.Position(call.Pos()), fn.Name.Name, types.ExprString(call.Fun))
				}
				return true
			})
		}
	}
}

func TestSentencesNameNoHiddenJobs(t *testing.T) {
	t.Parallel()
	v := &viewer{snap: emptySnapshot(t), visibility: visibility{user: "mallory", private: config.PrivateJobs}}
	for text, want := range map[string]string{
		"job 12 is ahead of it in partition main":                                  "another job is ahead of it in partition main",
		"it was preempted: jobs 12, 13 use its CPUs, and it goes on":               "it was preempted: other jobs use its CPUs, and it goes on",
		"run x is there already (job 5); stop it first":                            "run x is there already (another job); stop it first",
		"job 7 waits for job 8_3":                                                  "job 7 waits for another job",
		"there are 12 jobs in the queue, which is 3 hours long; its job script 12": "there are 12 jobs in the queue, which is 3 hours long; its job script 12",
	} {
		if got := v.sentence(text, 7); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}

func emptySnapshot(t *testing.T) *state.Snapshot {
	t.Helper()
	return state.New(state.Config{}, &state.Image{}).Snapshot()
}
