package api

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// pastViewer are the functions that read records without a viewer, each with the reason why nobody learns of what is
// not theirs by it. A handler that is not here and lists records must take them from the viewer.
var pastViewer = map[string]string{
	"metrics.Collect":       "totals without names or ids",
	"metrics.countQueue":    "totals by partition and reason, for scrapers that see all jobs",
	"history.sort":          "administrators only",
	"diag.Show":             "totals without names or ids",
	"jobs.addComponents":    "ids of components; the records are filtered afterwards",
	"jobs.endedRefs":        "filtered by the viewer there",
	"jobs.ended":            "filtered by the viewer there",
	"jobs.groupsOf":         "whether any partition asks for groups",
	"call.HidJobs":          "what is hidden goes to the audit log, not to the caller",
	"steps.isOver":          "of a job whose log the caller reads",
	"cluster.caState":       "administrators only",
	"steps.awaitStart":      "of a job whose log the caller reads",
	"steps.stepOf":          "of a job that the caller sees",
	"jobs.JobMetrics":       "memory of GPUs that the caller's job holds",
	"jobs.jobsOf":           "of runs that were filtered",
	"jobs.leaveDeleted":     "which of the jobs that the caller sees are left out",
	"jobs.keepCron":         "of jobs that the caller named and sees",
	"selection.MayBeArray":  "which way to search; the search itself uses the viewer",
	"nodes.meet":            "administrators only",
	"nodes.checkState":      "administrators only",
	"nodes.NodeEvents":      "filtered by the viewer there",
	"nodes.nodeView":        "behind viewer.nodes or a fleet that the caller sees",
	"people.NewProject":     "the record the caller made",
	"people.putUser":        "the record the caller made",
	"jobs.Runs":             "filtered by the viewer there",
	"cluster.settings":      "how many nodes there are and the kinds of their resources",
	"nodes.setAside":        "which nodes are reserved; names are shown by the viewer",
	"nodes.showInstance":    "hosts of a fleet that the caller sees",
	"nodes.showReservation": "sizes of a reservation that the caller sees",
	"jobs.StopRun":          "whose a hidden run is goes to the audit log, not to the caller",
	"jobs.StepsOf":          "steps of jobs that were filtered",
	"people.UpdateProject":  "checked by the viewer there",
	"events.pastEvents":     "filtered when they are sent",
	"jobs.withHistory":      "filtered by the viewer there",
	"usage.Show":            "added up; rows are filtered by the viewer there",
	"usage.outages":         "behind viewer.Nodes",
	"usage.cluster":         "sums over nodes, behind viewer.SeesNodes",
	"usage.reserved":        "sizes of a reservation that the caller sees",
}

// exemptFiles are the viewer itself, and files that find out who calls and whether a session may continue: they answer
// nothing about others.
var exemptFiles = map[string]string{
	"view/viewer.go":     "the viewer",
	"view/redact.go":     "the viewer",
	"view/shares.go":     "the viewer",
	"identity/auth.go":   "who calls",
	"identity/join.go":   "which node joins",
	"identity/jwt.go":    "who calls, and for whom an administrator makes a token",
	"identity/tokens.go": "whose tokens there are",
	"call/streamset.go":  "whether a stream may go on",
}

// A new route that lists jobs, users or nodes past the viewer fails here: every answer with such records goes through
// it.
func TestRecordsComeFromTheViewer(t *testing.T) {
	t.Parallel()
	reads := regexp.MustCompile(
		`(?i)(snap|snapshot\(\)|\bstore)\.(Job|Jobs|Tasks|OnNode|Node|Nodes|User|Users|Project|Projects|Policy|` +
			`Reservation|Reservations|Partitions|Run|Runs|Steps|Events|NodeEvents|Shares|QOSUsage|Spent)$`)
	fset := token.NewFileSet()
	packages, used := map[string]bool{}, map[string]bool{}
	err := filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		packages[filepath.Dir(path)] = true
		if exemptFiles[filepath.ToSlash(path)] != "" {
			used[filepath.ToSlash(path)] = true
			return nil
		}
		f, err := parser.ParseFile(fset, path, nil, 0)
		if err != nil {
			return err
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
				name := f.Name.Name + "." + fn.Name.Name
				if used[name] = true; pastViewer[name] == "" {
					t.Errorf("%s: %s reads %s past the viewer", fset.Position(call.Pos()), name, types.ExprString(call.Fun))
				}
				return true
			})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range pastViewer {
		if !used[name] {
			t.Errorf("%s reads nothing past the viewer: take it off the list", name)
		}
	}
	for path := range exemptFiles {
		if !used[path] {
			t.Errorf("there is no file %s", path)
		}
	}
	for _, p := range []string{
		"call", "cluster", "events", "identity", "jobs", "metrics", "nodes", "people", "selection",
		"steps", "view",
	} {
		if !packages[p] {
			t.Errorf("package %s was not looked at", p)
		}
	}
}
