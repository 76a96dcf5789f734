package server_test

import (
	"fmt"
	"net/url"
	"slices"
	"testing"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/server/servertest"
)

// Users, projects, policy, QOS, tokens, advance reservations and nodes come in pages: put together they are the whole
// listing, each record once and in its order.
func TestListingsComeInPages(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t)
	s.Join("first", core.Compute, false).Connect()
	for i := range 7 {
		s.Must("POST", "/api/v1/users", core.User{Name: core.UserName(fmt.Sprintf("u%d", i))}, nil)
		s.Must("POST", "/api/v1/projects", core.Project{Name: core.ProjectName(fmt.Sprintf("p%d", i))}, nil)
		s.Must("PUT", fmt.Sprintf("/api/v1/qos/q%d", i), core.QOS{}, nil)
		s.Must("POST", "/api/v1/tokens", client.NewToken{Kind: "join"}, nil)
		s.Must("POST", "/api/v1/reservations", client.NewReservation{
			AdvanceReservation: core.AdvanceReservation{
				Name: fmt.Sprintf("r%d", i), Users: []core.UserName{"root"}, NodeCount: 1,
				Start: core.At(time.Now().Add(time.Duration(i+1) * time.Hour)),
			}, Duration: 60,
		}, nil)
	}
	for path, read := range map[string]func(query string) ([]string, client.Page){
		"users": func(query string) (names []string, at client.Page) {
			var list client.UserList
			s.Must("GET", "/api/v1/users"+query, nil, &list)
			for _, u := range list.Users {
				names = append(names, string(u.Name))
			}
			return names, list.Page
		},
		"projects": func(query string) (names []string, at client.Page) {
			var list client.ProjectList
			s.Must("GET", "/api/v1/projects"+query, nil, &list)
			for _, p := range list.Projects {
				names = append(names, string(p.Name))
			}
			return names, list.Page
		},
		"qos": func(query string) (names []string, at client.Page) {
			var list client.QOSList
			s.Must("GET", "/api/v1/qos"+query, nil, &list)
			for i := range list.QOS {
				names = append(names, string(list.QOS[i].Name))
			}
			return names, list.Page
		},
		"policy": func(query string) (names []string, at client.Page) {
			var list client.PolicyList
			s.Must("GET", "/api/v1/policy"+query, nil, &list)
			for i := range list.QOS {
				names = append(names, "qos "+string(list.QOS[i].Name))
			}
			for i := range list.Projects {
				names = append(names, "project "+string(list.Projects[i].Name))
			}
			return names, list.Page
		},
		"tokens": func(query string) (names []string, at client.Page) {
			var list client.TokenList
			s.Must("GET", "/api/v1/tokens"+query, nil, &list)
			for i := range list.Tokens {
				names = append(names, list.Tokens[i].ID)
			}
			return names, list.Page
		},
		"reservations": func(query string) (names []string, at client.Page) {
			var list client.ReservationList
			s.Must("GET", "/api/v1/reservations"+query, nil, &list)
			for i := range list.Reservations {
				names = append(names, fmt.Sprint(list.Reservations[i].ID))
			}
			return names, list.Page
		},
	} {
		all, at := read("")
		if at.More || at.Next != "" || len(all) < 7 || !slices.IsSorted(all) && path != "policy" {
			t.Errorf("%s in one page: %v, %+v", path, all, at)
		}
		got, at := read("?limit=3")
		for pages := 1; at.More; pages++ {
			if len(got) != 3*pages || at.Next != got[len(got)-1] {
				t.Fatalf("%s, page %d: %v, %+v", path, pages, got, at)
			}
			var more []string
			more, at = read("?limit=3&after=" + url.QueryEscape(at.Next))
			got = append(got, more...)
		}
		if !slices.Equal(got, all) {
			t.Errorf("%s in pages: %v, want %v", path, got, all)
		}
		if exact, at := read(fmt.Sprintf("?limit=%d", len(all))); at.More || len(exact) != len(all) {
			t.Errorf("%s in a page that fits: %d of %d, %+v", path, len(exact), len(all), at)
		}
		for _, limit := range []string{"x", "-1"} {
			if status, err := s.Call("GET", "/api/v1/"+path+"?limit="+limit, "", nil, nil); status != 400 {
				t.Errorf("%s with limit %s: %d %v", path, limit, status, err)
			}
		}
	}
	for _, name := range []core.NodeName{"zeta", "alpha", "mid"} {
		s.Join(name, core.Compute, false)
	}
	var all, first, rest client.NodeList
	s.Must("GET", "/api/v1/nodes", nil, &all)
	s.Must("GET", "/api/v1/nodes?limit=3", nil, &first)
	s.Must("GET", "/api/v1/nodes?limit=3&after="+first.Next, nil, &rest)
	names := func(lists ...client.NodeList) (out []core.NodeName) {
		for _, l := range lists {
			for i := range l.Nodes {
				out = append(out, l.Nodes[i].Name)
			}
		}
		return out
	}
	if len(all.Nodes) != 5 || all.More || !first.More || rest.More || len(first.Nodes) != 3 ||
		!slices.Equal(names(first, rest), names(all)) {
		t.Errorf("nodes in pages: %v %+v, %v %+v, want %v", names(first), first.Page, names(rest), rest.Page, names(all))
	}
	for _, path := range []string{"nodes", "policy"} {
		if status, err := s.Call("GET", "/api/v1/"+path+"?after=x", "", nil, nil); status != 400 {
			t.Errorf("%s after x: %d %v", path, status, err)
		}
	}
}
