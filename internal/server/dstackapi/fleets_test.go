package dstackapi_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/dstack/wire"
	"bireme.dev/bireme/internal/server/dstackapi/dstackapitest"
	"bireme.dev/bireme/internal/server/servertest"
)

// TestPartlyUsedNodes: of a node that jobs share, fleets tell how much of it is in use.
func TestPartlyUsedNodes(t *testing.T) {
	t.Parallel()
	s, ada, _ := cluster(t)
	seen := func() wire.Instance {
		var one wire.Fleet
		ada.Get("/api/project/main/fleets/get", `{"name":"main"}`, &one)
		return one.Instances[slices.IndexFunc(one.Instances, func(x wire.Instance) bool { return x.Name == "n1" })]
	}
	if x := seen(); x.Status != "idle" || x.BusyBlocks != 0 || x.TotalBlocks != 1 {
		t.Fatalf("%+v", x)
	}
	run := apply(ada, spec("quarter", `{"resources": {"cpu": 2, "memory": "1GB..", "disk": "0.."}}`), false)
	s.AwaitState(core.JobID(run.BiremeJob), core.Running)
	if x := seen(); x.Status != "busy" || x.BusyBlocks != 2 || x.TotalBlocks != 4 {
		t.Fatalf("%+v", x)
	}
}

func TestPartitionsAreFleets(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t)
	boss, _, user, stranger := lab(t, s)
	s.Join("n1", core.Compute, false).Connect()
	var list []wire.Fleet
	user.Get("/api/project/lab/fleets/list", nil, &list)
	if len(list) != 1 || list[0].Name != "main" || list[0].ProjectName != "lab" || list[0].Status != "active" {
		t.Fatalf("%+v", list)
	}
	f := list[0]
	if len(f.Instances) != 2 || f.Instances[0].Name != "idle" || f.Instances[0].Status != "pending" ||
		f.Instances[1].Name != "n1" || f.Instances[1].Status != "idle" || f.Instances[1].Backend != "remote" ||
		f.Instances[1].InstanceType == nil || f.Instances[1].FleetID != f.ID ||
		f.Instances[1].TotalBlocks != 1 {
		t.Errorf("instances: %+v", f.Instances)
	}
	var one wire.Fleet
	user.Get("/api/project/lab/fleets/get", `{"name":"main","id":null}`, &one)
	user.Get("/api/project/lab/fleets/get", map[string]any{"id": f.ID}, &one)
	if one.ID != f.ID || len(one.Instances) != 2 {
		t.Errorf("one: %+v", one)
	}
	var inst wire.Instance
	user.Get("/api/project/lab/instances/get", map[string]any{"id": f.Instances[1].ID}, &inst)
	if inst.Name != "n1" {
		t.Errorf("instance: %+v", inst)
	}
	var all []wire.Instance
	user.Get("/api/instances/list", `{"project_names":["lab"],"only_active":true,"limit":1}`, &all)
	if len(all) != 1 || all[0].ProjectName != "lab" {
		t.Errorf("instances: %+v", all)
	}
	var checks wire.HealthChecks
	user.Get("/api/project/lab/instances/get_instance_health_checks", `{"fleet_name":"main","instance_num":1}`, &checks)
	if len(checks.HealthChecks) != 1 || checks.HealthChecks[0].Status != "healthy" {
		t.Errorf("health: %+v", checks)
	}
	var fleets []wire.Fleet
	stranger.Get("/api/fleets/list", `{"project_name":null,"limit":100}`, &fleets)
	for _, f := range fleets {
		if f.ProjectName == "lab" {
			t.Errorf("a stranger sees %+v", f)
		}
	}
	stranger.Refused("/api/project/lab/fleets/list", nil, 403, denied)
	user.Refused("/api/project/lab/fleets/get", `{"name":"nofleet"}`, 400,
		`[{"msg":"Resource not found","code":"resource_not_exists"}]`)
	user.Refused("/api/project/lab/fleets/get", `{}`, 400, "name or id must be specified")
	boss.Refused("/api/project/lab/fleets/delete", `{"names":["main"]}`, 400, "main is a partition of the cluster")
}

// fleetSpec is what the client of 0.22.5 sends for a fleet of one host that nobody answers on.
func fleetSpec(t *testing.T, name, key string, blocks int) map[string]any {
	t.Helper()
	const text = `{"configuration":{"type":"fleet","name":null,"placement":null,"blocks":1,"nodes":null,"reservation":null,
		"resources":null,"backends":null,"regions":null,"availability_zones":null,"instance_types":null,"spot_policy":null,
		"retry":null,"max_price":null,"idle_duration":null,"tags":null,"backend_options":null,
		"ssh_config":{"user":"root","port":null,"identity_file":"/k","ssh_key":{"public":"ssh-ed25519 AAAA","private":null},
		"proxy_jump":null,"hosts":[{"hostname":"127.0.0.1","port":1,"user":null,"identity_file":null,"proxy_jump":null,
		"internal_ip":null,"ssh_key":null,"blocks":2}],"network":null},"env":{"HF_TOKEN":"hidden-token"}},
		"configuration_path":"fleet.dstack.yml","profile":{"name":"default","default":false}}`
	var spec map[string]any
	if err := json.Unmarshal([]byte(text), &spec); err != nil {
		t.Fatal(err)
	}
	conf := spec["configuration"].(map[string]any)
	conf["name"] = name
	ssh := conf["ssh_config"].(map[string]any)
	ssh["ssh_key"].(map[string]any)["private"] = key
	ssh["hosts"].([]any)[0].(map[string]any)["blocks"] = blocks
	return spec
}

func TestSSHFleets(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t)
	boss, _, user, _ := lab(t, s)
	admin := dstackapitest.New(t, s, "ada", core.RoleAdmin)
	var me wire.UserWithCreds
	admin.Get("/api/users/get_my_user", nil, &me)
	spec := fleetSpec(t, "lab-hosts", *me.SSHPrivateKey, 2)
	const base = "/api/project/lab/fleets/"
	var plan wire.FleetPlan
	admin.Get(base+"get_plan", map[string]any{"spec": spec}, &plan)
	if plan.Action != "create" || plan.CurrentResource != nil || plan.User != "ada" ||
		!strings.Contains(string(plan.Spec), "PRIVATE KEY") || strings.Contains(string(plan.EffectiveSpec), "PRIVATE KEY") {
		t.Errorf("plan: %+v", plan)
	}
	apply := map[string]any{"plan": map[string]any{"spec": spec, "current_resource": nil}, "force": false}
	boss.Refused(base+"apply", apply, 403, denied)
	var made wire.Fleet
	a := admin.Send(base+"apply", apply)
	if err := json.Unmarshal([]byte(a.Body), &made); err != nil || a.Status != 200 {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	if made.Name != "lab-hosts" || len(made.Instances) != 1 || made.Instances[0].Name != "lab-hosts-0" ||
		*made.Instances[0].Hostname != "127.0.0.1" || made.Instances[0].TotalBlocks != 2 {
		t.Errorf("made: %s", a.Body)
	}
	// applied again there is nothing to change: what is effective is what there is
	admin.Get(base+"get_plan", map[string]any{"spec": spec}, &plan)
	if plan.Action != "update" || !sameJSON(t, plan.CurrentResource.Spec, plan.EffectiveSpec) {
		t.Errorf("%s\n%s", plan.CurrentResource.Spec, plan.EffectiveSpec)
	}
	// keys and variables are told to nobody else
	for _, who := range []*dstackapitest.Caller{boss, user} {
		if a := who.Send(base+"get", `{"name":"lab-hosts"}`); strings.Contains(a.Body, "PRIVATE") ||
			strings.Contains(a.Body, "hidden-token") {
			t.Errorf("shown: %s", a.Body)
		}
	}
	changed := fleetSpec(t, "lab-hosts", *me.SSHPrivateKey, 4)
	admin.Get(base+"apply", map[string]any{"plan": map[string]any{"spec": changed}, "force": false}, &made)
	if made.Instances[0].TotalBlocks != 4 {
		t.Errorf("changed: %+v", made.Instances)
	}
	// its name is the cluster's: no other project takes it over
	admin.Get("/api/projects/create", map[string]any{"project_name": "den"}, nil)
	const den = "/api/project/den/fleets/"
	admin.Refused(den+"get_plan", map[string]any{"spec": changed}, 400, "resource_exists")
	admin.Refused(den+"apply", map[string]any{"plan": map[string]any{"spec": changed}}, 400, "resource_exists")
	// a fleet of the native command is shown in the same form
	var native struct {
		Fleets []struct{ Name, Project string }
	}
	s.Must("GET", "/api/v1/fleets", nil, &native)
	if len(native.Fleets) != 1 || native.Fleets[0].Name != "lab-hosts" || native.Fleets[0].Project != "lab" {
		t.Errorf("native: %+v", native)
	}
	bad := fleetSpec(t, "Bad_Name", *me.SSHPrivateKey, 1)
	admin.Refused(base+"get_plan", map[string]any{"spec": bad}, 400, "Resource name should match regex")
	cloud := fleetSpec(t, "cloud", "", 1)
	cloud["configuration"].(map[string]any)["ssh_config"] = nil
	cloud["configuration"].(map[string]any)["nodes"] = map[string]any{"min": 0, "max": 2}
	admin.Refused(base+"get_plan", map[string]any{"spec": cloud}, 400, "not supported yet")
	unknown := fleetSpec(t, "x1", *me.SSHPrivateKey, 1)
	unknown["configuration"].(map[string]any)["plcement"] = "any"
	admin.Refused(base+"get_plan", map[string]any{"spec": unknown}, 422,
		`"loc":["body","spec","configuration","fleet","plcement"]`)
	if a := admin.Send(base+"delete_instances", `{"name":"lab-hosts","instance_nums":[7]}`); a.Body != "null" {
		t.Errorf("an instance that is not there: %s", a.Body)
	}
	user.Refused(base+"delete", `{"names":["lab-hosts"]}`, 403, denied)
	admin.Get(base+"delete", `{"names":["lab-hosts","never"]}`, nil)
	s.Await("the fleet's end", func() bool {
		return admin.Send(base+"get", `{"name":"lab-hosts"}`).Status == 400
	})
}

func sameJSON(t *testing.T, a, b json.RawMessage) bool {
	t.Helper()
	var x, y any
	if err := json.Unmarshal(a, &x); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &y); err != nil {
		t.Fatal(err)
	}
	one, err := json.Marshal(x)
	if err != nil {
		t.Fatal(err)
	}
	two, err := json.Marshal(y)
	if err != nil {
		t.Fatal(err)
	}
	return string(one) == string(two)
}

func TestWhatIsNotThere(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t)
	boss, _, user, _ := lab(t, s)
	const p = "/api/project/lab"
	for path, body := range map[string]any{
		"/api/volumes/list": nil, p + "/volumes/list": nil, p + "/gateways/list": `{"include_imported":true}`,
		p + "/templates/list": nil, "/api/backends/list_types": "{}",
	} {
		if a := user.Send(path, body); a.Status != 200 || a.Body != "[]" {
			t.Errorf("%s: %d %s", path, a.Status, a.Body)
		}
	}
	const none = `{"detail":[{"msg":"Resource not found","code":"resource_not_exists"}]}`
	user.Refused(p+"/volumes/get", `{"name":"novol"}`, 400, none)
	user.Refused(p+"/gateways/get", `{"name":"nogw"}`, 400, none)
	user.Refused(p+"/volumes/create", `{"configuration":{"type":"volume","class":"x","name":"vol","size":"1GB"}}`, 400,
		"defines classes of volumes")
	boss.Refused(p+"/gateways/get_plan", `{"spec":{}}`, 400, "gateways yet")
	user.Refused(p+"/gateways/get_plan", `{"spec":{}}`, 403, denied)
	user.Refused(p+"/exports/list", nil, 400, "does not support exports")
	user.Version = "0.21.2"
	if a := user.Send(p+"/exports/list", nil); a.Body != "[]" {
		t.Errorf("an older client: %s", a.Body)
	}
}
