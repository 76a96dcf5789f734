package people

import (
	"net/http"
	"slices"
	"strings"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine"
	"bireme.dev/bireme/internal/engine/state"
	"bireme.dev/bireme/internal/server/api/call"
)

// Policy lists QOS by name, then projects by name. A page ends with an entry of either kind; the defaults come with
// the first page.
func (a *People) Policy(_ http.ResponseWriter, r *http.Request, who *call.Caller) (any, error) {
	page, err := call.ParsePage(r.URL.Query())
	if err != nil {
		return nil, err
	}
	kind, name, ok := strings.Cut(page.After, " ")
	if page.After != "" && (!ok || kind != kindQOS && kind != kindProject) {
		return nil, core.Errorf(core.Invalid, "after: %q is not what an answer had as next", page.After)
	}
	v, err := a.Viewer(who)
	if err != nil {
		return nil, err
	}
	all := v.Policy()
	out := &client.PolicyList{Policy: core.Policy{QOS: []core.QOS{}, Projects: []core.Project{}}}
	if kind == "" {
		out.Defaults = all.Defaults
	}
	room := page
	if kind != kindProject {
		list := slices.DeleteFunc(all.QOS, func(q core.QOS) bool { return string(q.Name) <= name && kind != "" })
		out.QOS, out.Page = call.Cut(room, list, func(q *core.QOS) string { return kindQOS + " " + string(q.Name) })
		if room.Limit -= len(out.QOS); out.More || room.Limit == 0 && len(all.Projects) > 0 {
			out.Page = client.Page{More: true, Next: kindQOS + " " + string(out.QOS[len(out.QOS)-1].Name)}
			return out, nil
		}
		name = ""
	}
	list := slices.DeleteFunc(all.Projects, func(p core.Project) bool { return string(p.Name) <= name && name != "" })
	out.Projects, out.Page = call.Cut(room, list,
		func(p *core.Project) string { return kindProject + " " + string(p.Name) })
	return out, nil
}

// What a page of a policy ends with.
const (
	kindQOS     = "qos"
	kindProject = "project"
)

func (a *People) ApplyPolicy(_ http.ResponseWriter, r *http.Request, who *call.Caller) (any, error) {
	var in client.ApplyPolicy
	if err := call.Decode(r, &in); err != nil {
		return nil, err
	}
	return engine.Do(r.Context(), a.Engine, &state.ApplyPolicy{
		By: who.Identity, Policy: in.Policy, Prune: in.Prune, Force: in.Force, Dry: in.DryRun,
	})
}

// ListQOS lists QOS by name.
func (a *People) ListQOS(_ http.ResponseWriter, r *http.Request, who *call.Caller) (any, error) {
	page, err := call.ParsePage(r.URL.Query())
	if err != nil {
		return nil, err
	}
	v, err := a.Viewer(who)
	if err != nil {
		return nil, err
	}
	out := &client.QOSList{}
	list := slices.DeleteFunc(v.Policy().QOS, func(q core.QOS) bool { return string(q.Name) <= page.After })
	out.QOS, out.Page = call.Cut(page, list, func(q *core.QOS) string { return string(q.Name) })
	return out, nil
}

func (a *People) PutQOS(_ http.ResponseWriter, r *http.Request, who *call.Caller) (any, error) {
	var q core.QOS
	if err := call.Decode(r, &q); err != nil {
		return nil, err
	}
	q.Name = core.QOSName(r.PathValue("name"))
	if _, err := engine.Do(r.Context(), a.Engine, &state.PutQOS{By: who.Identity, QOS: &q}); err != nil {
		return nil, err
	}
	return call.OK{}, nil
}

func (a *People) DropQOS(_ http.ResponseWriter, r *http.Request, who *call.Caller) (any, error) {
	if r.PathValue("name") == "normal" && a.Config.Accounting.NormalQOS {
		return nil, core.Errorf(core.Conflict, "QOS normal cannot be removed: it is the default").Because("qos_in_use")
	}
	if _, err := engine.Do(r.Context(), a.Engine,
		&state.DropQOS{
			By: who.Identity, Name: core.QOSName(r.PathValue("name")), Unlist: r.URL.Query().Has("unlist"),
		}); err != nil {
		return nil, err
	}
	return call.OK{}, nil
}

func (a *People) DropProject(_ http.ResponseWriter, r *http.Request, who *call.Caller) (any, error) {
	in := &state.DropProject{
		By: who.Identity, Name: core.ProjectName(r.PathValue("project")), Members: r.URL.Query().Has("members"),
	}
	if _, err := engine.Do(r.Context(), a.Engine, in); err != nil {
		return nil, err
	}
	return call.OK{}, nil
}
