package dstackapi_test

import (
	"strings"
	"testing"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/dstack/wire"
	"bireme.dev/bireme/internal/server/dstackapi/dstackapitest"
	"bireme.dev/bireme/internal/server/servertest"
)

func TestUsersAndProjects(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t)
	admin := dstackapitest.New(t, s, "ada", core.RoleAdmin)
	var me wire.UserWithCreds
	admin.Get("/api/users/get_my_user", nil, &me)
	if me.Username != "ada" || me.GlobalRole != "admin" || me.Creds.Token != admin.Token || !me.Active {
		t.Errorf("me: %+v", me)
	}
	var bob wire.User
	admin.Get("/api/users/create", `{"username":"bob","global_role":"user","email":"bob@lab.example"}`, &bob)
	if bob.GlobalRole != "user" || bob.Email == nil || *bob.Email != "bob@lab.example" ||
		bob.ID != wire.UUID("user", "bob") {
		t.Errorf("bob: %+v", bob)
	}
	admin.Refused("/api/users/create", `{"username":"bob","global_role":"user"}`, 400,
		`{"detail":[{"msg":"Resource exists","code":"resource_exists"}]}`)
	// it is the user that every other command knows
	var native core.User
	s.Must("GET", "/api/v1/users/bob", nil, &native)
	if native.Email != "bob@lab.example" || native.Role != core.RoleUser {
		t.Errorf("native: %+v", native)
	}

	var p wire.Project
	admin.Get("/api/projects/create", `{"project_name":"second","is_public":false}`, &p)
	if p.Owner.Username != "ada" || len(p.Members) != 1 || p.Members[0].ProjectRole != "admin" {
		t.Errorf("project: %+v", p)
	}
	admin.Refused("/api/projects/create", `{"project_name":"second"}`, 400, `"code":"resource_exists"`)
	admin.Get("/api/projects/second/add_members",
		`{"members":[{"username":"bob@lab.example","project_role":"user"}]}`, &p)
	if len(p.Members) != 2 || p.Members[1].User.Username != "bob" || p.Members[1].ProjectRole != "user" {
		t.Errorf("members: %+v", p.Members)
	}
	admin.Refused("/api/projects/second/add_members", `{"members":[{"username":"nobody","project_role":"user"}]}`, 400,
		`{"detail":[{"msg":"User not found: nobody","code":"error"}]}`)
	admin.Refused("/api/projects/second/set_members", `{"members":[{"username":"bob","project_role":"boss"}]}`, 422,
		`"loc":["body","members",0,"project_role"],"msg":"Input should be 'admin', 'manager' or 'user'"`)
	for _, keys := range []string{
		"project_id", "project_name", "owner", "created_at", "backends", "members",
		"is_public",
	} {
		if _, ok := keysOf(t, admin.Send("/api/projects/second/get", nil).Body)[keys]; !ok {
			t.Errorf("a project lacks %s", keys)
		}
	}
	var list []wire.Project
	admin.Get("/api/projects/list", nil, &list)
	if len(list) < 2 || list[0].ProjectName != "second" || len(list[0].Members) != 0 {
		t.Errorf("list: %+v", list)
	}
	var counted wire.Projects
	admin.Get("/api/projects/list", `{"return_total_count":true,"name_pattern":"SEC","limit":1}`, &counted)
	if *counted.TotalCount != 1 || counted.Projects[0].ProjectName != "second" {
		t.Errorf("counted: %+v", counted)
	}
	admin.Get("/api/projects/second/set_members", `{"members":[{"username":"bob","project_role":"manager"}]}`, &p)
	if len(p.Members) != 1 || p.Members[0].ProjectRole != "manager" {
		t.Errorf("members: %+v", p.Members)
	}
	admin.Get("/api/projects/delete", `{"projects_names":["second"]}`, nil)
	admin.Refused("/api/projects/second/get", nil, 404, "Not found")
}

func TestWhoMayDoWhatWithPeople(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t)
	admin := dstackapitest.New(t, s, "ada", core.RoleAdmin)
	bob := dstackapitest.New(t, s, "bob", core.RoleUser)
	eve := dstackapitest.New(t, s, "eve", core.RoleUser)
	admin.Get("/api/projects/create", `{"project_name":"lab"}`, nil)
	admin.Get("/api/projects/lab/add_members", `{"members":[{"username":"bob","project_role":"manager"}]}`, nil)
	const denied = `{"detail":{"msg":"Access denied","code":null}}`
	for path, body := range map[string]string{
		"/api/users/create":    `{"username":"x1","global_role":"user"}`,
		"/api/users/update":    `{"username":"bob","global_role":"admin"}`,
		"/api/users/delete":    `{"users":["ada"]}`,
		"/api/projects/create": `{"project_name":"mine"}`,
		"/api/projects/delete": `{"projects_names":["lab"]}`,
	} {
		bob.Refused(path, body, 403, denied)
	}
	eve.Refused("/api/projects/lab/get", nil, 403, denied)
	eve.Refused("/api/users/refresh_token", `{"username":"bob"}`, 403, denied)
	eve.Refused("/api/projects/lab/add_members", `{"members":[{"username":"eve","project_role":"user"}]}`, 403, denied)
	bob.Refused("/api/projects/lab/update", `{"is_public":true}`, 403, denied)
	// a manager gives no role above the own one
	bob.Refused("/api/projects/lab/add_members", `{"members":[{"username":"bob","project_role":"admin"}]}`, 403, denied)
	bob.Refused("/api/projects/lab/set_members", `{"members":[{"username":"bob","project_role":"manager"}]}`, 403, denied)
	bob.Get("/api/projects/lab/add_members", `{"members":[{"username":"eve","project_role":"user"}]}`, nil)
	eve.Get("/api/projects/lab/get", nil, nil)
	eve.Refused("/api/projects/lab/remove_members", `{"usernames":["bob"]}`, 403, denied)
	eve.Get("/api/projects/lab/remove_members", `{"usernames":["eve"]}`, nil)
	eve.Refused("/api/projects/lab/get", nil, 403, denied)
	// everybody looks at a public project and may join it, as a user
	admin.Get("/api/projects/lab/update", `{"is_public":true}`, nil)
	eve.Get("/api/projects/lab/get", nil, nil)
	eve.Refused("/api/projects/lab/add_members", `{"members":[{"username":"eve","project_role":"manager"}]}`, 403, denied)
	eve.Get("/api/projects/lab/add_members", `{"members":[{"username":"eve","project_role":"user"}]}`, nil)
	// nobody gets what is another's
	var other wire.UserWithCreds
	admin.Get("/api/users/get_user", `{"username":"bob"}`, &other)
	if other.Creds.Token != "" || other.SSHPrivateKey != nil {
		t.Errorf("another's: %+v", other)
	}
}

func TestTokensOfDstackClients(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t)
	admin := dstackapitest.New(t, s, "ada", core.RoleAdmin)
	bob := dstackapitest.New(t, s, "bob", core.RoleUser)
	var fresh wire.UserWithCreds
	bob.Get("/api/users/refresh_token", `{"username":"bob"}`, &fresh)
	bob.Refused("/api/users/get_my_user", nil, 403, "Invalid token")
	bob = bob.As(fresh.Creds.Token)
	bob.Get("/api/users/get_my_user", nil, nil)
	admin.Get("/api/users/refresh_token", `{"username":"bob"}`, &fresh)
	first := bob.As(fresh.Creds.Token)
	first.Get("/api/users/get_my_user", nil, nil)
	admin.Get("/api/users/refresh_token", `{"username":"bob"}`, &fresh)
	first.Refused("/api/users/get_my_user", nil, 403, "Invalid token")
	// a token of one project reaches no other
	s.Must("POST", "/api/v1/projects", core.Project{Name: "one", Members: []core.Member{{User: "bob", Role: "admin"}}},
		nil)
	s.Must("POST", "/api/v1/projects", core.Project{Name: "two", Members: []core.Member{{User: "bob", Role: "admin"}}},
		nil)
	var made struct{ Secret string }
	s.Must("POST", "/api/v1/tokens", `{"user":"bob","project":"one","client":"dstack"}`, &made)
	one := bob.As(made.Secret)
	one.Get("/api/projects/one/get", nil, nil)
	one.Refused("/api/projects/two/get", nil, 403, "limited to project one")
	one.Refused("/api/users/list", nil, 403, "limited to")
	one.Refused("/api/projects/one/update", `{"is_public":true}`, 403, "scope")
	var list []wire.Project
	one.Get("/api/projects/list", nil, &list)
	if len(list) != 1 || list[0].ProjectName != "one" {
		t.Errorf("projects: %+v", list)
	}
	admin.Get("/api/users/delete", `{"users":["bob"]}`, nil)
	if a := one.Send("/api/projects/one/get", nil); a.Status != 403 || strings.Contains(a.Body, "members") {
		t.Errorf("a deleted user: %d %s", a.Status, a.Body)
	}
}
