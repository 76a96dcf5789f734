package dstackapi_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/dstack/wire"
	"bireme.dev/bireme/internal/server/dstackapi/dstackapitest"
	"bireme.dev/bireme/internal/server/servertest"
)

// Who is not a member of a public project gets to know its members, and not their e-mail addresses.
func TestEmailsOfMembers(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t)
	admin := dstackapitest.New(t, s, "ada", core.RoleAdmin)
	eve, bob := dstackapitest.New(t, s, "eve", core.RoleUser), dstackapitest.New(t, s, "bob", core.RoleUser)
	admin.Get("/api/users/update", `{"username":"bob","global_role":"user","email":"bob@lab.example"}`, nil)
	admin.Get("/api/users/update", `{"username":"ada","global_role":"admin","email":"ada@lab.example"}`, nil)
	admin.Get("/api/projects/create", `{"project_name":"open","is_public":true}`, nil)
	admin.Get("/api/projects/open/add_members", `{"members":[{"username":"bob","project_role":"user"}]}`, nil)
	for path, body := range map[string]any{
		"/api/projects/open/get": nil, "/api/projects/list_only_no_fleets": nil,
		"/api/projects/list": `{"username":"bob","name_pattern":"open"}`,
	} {
		if got := eve.Send(path, body).Body; strings.Contains(got, "@lab.example") {
			t.Errorf("%s tells who is not a member %s", path, got)
		}
	}
	var p wire.Project
	bob.Get("/api/projects/open/get", nil, &p)
	if p.Owner.Email == nil || len(p.Members) != 2 || p.Members[1].User.Email == nil {
		t.Errorf("a member sees %+v", p)
	}
}

// Changes of a project at the same time do not undo each other.
func TestChangesOfAProjectMeet(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t)
	admin := dstackapitest.New(t, s, "ada", core.RoleAdmin)
	admin.Get("/api/projects/create", `{"project_name":"lab"}`, nil)
	var all sync.WaitGroup
	const users = 12
	for i := range users {
		dstackapitest.New(t, s, core.UserName(fmt.Sprintf("u%d", i)), core.RoleUser)
	}
	for i := range users {
		all.Go(func() {
			admin.Get("/api/projects/lab/add_members",
				fmt.Sprintf(`{"members":[{"username":"u%d","project_role":"user"}]}`, i), nil)
		})
		if i%3 > 0 {
			continue
		}
		all.Go(func() {
			admin.Get("/api/projects/lab/update", fmt.Sprintf(`{"is_public":true,"templates_repo":"r%d"}`, i), nil)
		})
	}
	all.Wait()
	var p wire.Project
	admin.Get("/api/projects/lab/get", nil, &p)
	if len(p.Members) != users+1 || !p.IsPublic {
		t.Errorf("the project has %d members, and is public: %t", len(p.Members), p.IsPublic)
	}
}

// That a private key was read is in the audit log, like ones of a minute as one entry.
func TestReadKeysAreAudited(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t)
	bob := dstackapitest.New(t, s, "bob", core.RoleUser)
	bob.Get("/api/users/get_my_user", nil, nil)
	bob.Get("/api/users/get_user", `{"username":"bob"}`, nil)
	count := func() (n int) {
		var list struct {
			Entries []core.AuditEntry `json:"entries"`
		}
		s.Must("GET", "/api/v1/audit?user=bob&action=ssh_key.read", nil, &list)
		for _, e := range list.Entries {
			if e.Object != "ssh key of bob" || e.Addr == "" || e.Token == "" {
				t.Errorf("entry %+v", e)
			}
			n += int(e.Count)
		}
		return n
	}
	s.Await("the read is in the audit log", func() bool { return count() > 0 })
}

// A manager who plans a run of somebody else as it is changes it in place, although what is private of it is not shown.
func TestPlanOfAManager(t *testing.T) {
	t.Parallel()
	s, ada, _ := cluster(t)
	bob := dstackapitest.New(t, s, "bob", core.RoleNone)
	ada.Get("/api/projects/main/add_members", map[string]any{
		"members": []map[string]any{{"username": "bob", "project_role": "manager"}},
	}, nil)
	key := `ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKf1V0pZ9M5s3xM1rN3c0zqzqI1b1mZb8Xn2q1kq8YyG`
	mine := spec("hers", `{"env": {"TOKEN": "hush"}}`)
	mine["ssh_key_pub"] = key
	apply(ada, mine, false)
	next := spec("hers", `{"env": {"TOKEN": "hush"}, "priority": 7}`)
	next["ssh_key_pub"] = key
	var plan wire.RunPlan
	bob.Get(project+"runs/get_plan", map[string]any{"run_spec": next}, &plan)
	if plan.Action != wire.ActionUpdate {
		t.Errorf("the plan is to %s", plan.Action)
	}
	if strings.Contains(string(plan.CurrentResource.RunSpec), "hush") {
		t.Errorf("the manager is shown %s", plan.CurrentResource.RunSpec)
	}
}

// A site's own images are those of runs that name none, in the plan and in the job.
func TestImagesOfTheSite(t *testing.T) {
	t.Parallel()
	s, ada, _ := cluster(t, "dstack.base_image=lab/base:2", "dstack.devel_image=lab/devel:2",
		"dstack.docker_image=lab/dind:2")
	for change, want := range map[string]string{
		`{"image": null, "python": "3.12"}`: "lab/base:2", `{"image": null, "nvcc": true}`: "lab/devel:2",
		`{"image": null, "docker": true}`: "lab/dind:2", `{}`: "lab/base:1",
	} {
		one := spec("", change)
		var plan wire.RunPlan
		ada.Get(project+"runs/get_plan", map[string]any{"run_spec": one}, &plan)
		if got := plan.JobPlans[0].JobSpec.ImageName; got != want {
			t.Errorf("%s: the plan has image %s", change, got)
		}
		run := apply(ada, one, false)
		if got := run.Jobs[0].Spec.ImageName; got != want {
			t.Errorf("%s: the run has image %s", change, got)
		}
		j := s.Job(core.JobID(run.BiremeJob))
		if box := j.Spec.More().Container; box == nil || box.Image != want {
			t.Errorf("%s: the job has container %+v", change, box)
		}
	}
}
