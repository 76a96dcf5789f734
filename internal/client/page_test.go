package client

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"bireme.dev/bireme/internal/core"
)

// A listing is asked for until there is no more; a server that answers with the same page again ends it.
func TestListingsFollowPages(t *testing.T) {
	t.Parallel()
	asked := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		after := r.URL.Query().Get("after")
		var body any
		switch r.URL.Path + "?" + after {
		case "/api/v1/users?":
			body = UserList{Users: []core.User{{Name: "a"}, {Name: "b"}}, Page: Page{More: true, Next: "b"}}
		case "/api/v1/users?b":
			body = UserList{Users: []core.User{{Name: "c"}}}
		case "/api/v1/projects?":
			body = ProjectList{Projects: []core.Project{{Name: "p"}}} // as an older server answers
		case "/api/v1/nodes?", "/api/v1/nodes?7":
			body = NodeList{Nodes: []Node{{}}, Page: Page{More: true, Next: "7"}}
		}
		json.NewEncoder(w).Encode(body)
	}))
	defer srv.Close()
	c := testClient(t, insecure(srv.URL))
	users, err := c.Users(t.Context())
	if err != nil || len(users.Users) != 3 || users.Users[2].Name != "c" || users.More || users.Next != "" {
		t.Errorf("users: %+v, %v", users, err)
	}
	projects, err := c.Projects(t.Context())
	if err != nil || len(projects.Projects) != 1 || asked != 3 {
		t.Errorf("projects: %+v, %v after %d requests", projects, err, asked)
	}
	if nodes, err := c.Nodes(t.Context()); err != nil || len(nodes.Nodes) != 2 || asked != 5 {
		t.Errorf("nodes of a server that repeats itself: %+v, %v after %d requests", nodes, err, asked)
	}
}
