package server_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/server/servertest"
)

// Requests that would make the server work out millions of names, or look each of them up, are refused before it
// begins.
func TestOneRequestCannotExhaustTheServer(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t)
	query := func(kv ...string) string {
		v := url.Values{}
		for i := 0; i < len(kv); i += 2 {
			v.Add(kv[i], kv[i+1])
		}
		return "/api/v1/jobs?" + v.Encode()
	}
	var nodes []string
	for range 100 { // each list alone is within the limit
		nodes = append(nodes, "node", "n[1-60000]")
	}
	many := make([]string, 20_000)
	for i := range many {
		many[i] = fmt.Sprint(1_000_000 + i)
	}
	for what, c := range map[string]struct {
		method, path string
		body         any
		status       int
	}{
		"node lists":  {"GET", query(nodes...), nil, http.StatusRequestEntityTooLarge},
		"a node list": {"GET", query("node", "a[1-1000]b[1-1000]"), nil, http.StatusBadRequest},
		"a long name": {"GET", query("node", strings.Repeat("x", 20_000)+"[1-60000]"), nil, http.StatusBadRequest},
		"words":       {"GET", query("user", strings.Repeat("a,", 12_000)), nil, http.StatusRequestEntityTooLarge},
		"nodes of a cancel": {
			"POST", "/api/v1/jobs/cancel",
			client.Cancel{Nodes: []string{"n[1-60000]", "m[1-60000]"}},
			http.StatusRequestEntityTooLarge,
		},
		"names of a cancel": {"POST", "/api/v1/jobs/cancel", client.Cancel{Names: many}, http.StatusRequestEntityTooLarge},
		"ids of a cancel":   {"POST", "/api/v1/jobs/cancel", client.Cancel{IDs: many}, http.StatusRequestEntityTooLarge},
		"tasks of a cancel": {
			"POST", "/api/v1/jobs/cancel",
			client.Cancel{IDs: []string{"1_[0-3999999]", "2_[0-3999999]"}},
			http.StatusRequestEntityTooLarge,
		},
		"a listing's ids":    {"GET", query("id", strings.Join(many[:5200], ",")), nil, http.StatusRequestEntityTooLarge},
		"tasks of a listing": {"GET", query("id", "1_[0-3999999],2_[0-3999999]"), nil, http.StatusRequestEntityTooLarge},
		"nodes of reservation": {
			"POST", "/api/v1/reservations",
			map[string]any{"name": "r", "nodes": "n[1-1000000]", "duration": 60},
			http.StatusBadRequest,
		},
	} {
		status, err := s.Call(c.method, c.path, "", c.body, nil)
		if status != c.status || err == nil || len(err.Message) > 5000 {
			t.Errorf("%s: %d %v", what, status, err)
		}
	}
}

// Thousands of ids, most of them of nobody's jobs, are answered each, from one pass and one query.
func TestCancelOfManyIDs(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t)
	hold := func(in *client.Submit) { in.Spec.Hold = true }
	one := s.Submit(hold)
	array := s.Submit(func(in *client.Submit) {
		hold(in)
		in.Spec.Array = "0-99"
	})
	ended := s.Submit(hold)
	s.Must("POST", "/api/v1/jobs/cancel", client.Cancel{IDs: []string{fmt.Sprint(ended)}}, nil)
	s.AwaitState(ended, core.Cancelled)
	ids := []string{
		fmt.Sprint(one), fmt.Sprintf("%d_7", array), fmt.Sprintf("%d_[20-29]", array),
		fmt.Sprintf("%d_500", array), fmt.Sprint(ended),
	}
	for i := range 4000 {
		ids = append(ids, fmt.Sprint(1_000_000+i))
	}
	var out client.Cancelled
	s.Must("POST", "/api/v1/jobs/cancel", client.Cancel{IDs: ids}, &out)
	got := map[string]core.Code{}
	for _, r := range out.Results {
		if got[r.ID] = ""; r.Error != nil {
			got[r.ID] = r.Error.Code
		}
	}
	want := map[string]core.Code{
		ids[0]: "", ids[1]: "", ids[2]: "", ids[3]: core.NotFound, ids[4]: core.Conflict,
		ids[5]: core.NotFound, ids[4004]: core.NotFound,
	}
	for id, code := range want {
		if have, there := got[id]; !there || have != code {
			t.Errorf("job %s: %q, not %q", id, have, code)
		}
	}
	if len(out.Results) != len(ids) {
		t.Errorf("%d answers to %d ids", len(out.Results), len(ids))
	}
	if j := s.Job(array); j.Array.Tasks.Len() != 89 {
		t.Errorf("%d tasks are left", j.Array.Tasks.Len())
	}
}

// A step on a list of blanks or commas is refused.
func TestStepOnNoNode(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t)
	n := s.Join("n1", core.Compute, false)
	n.Connect()
	id := s.Submit(nil)
	s.AwaitState(id, core.Running)
	for _, list := range []string{" ", ",", ", ,"} {
		status, err := s.Call("POST", fmt.Sprintf("/api/v1/jobs/%d/steps", id), "",
			client.NewStep{NodeList: list, Tasks: 1}, nil)
		if status != http.StatusBadRequest || err == nil {
			t.Errorf("%q: %d %v", list, status, err)
		}
	}
}

// Live jobs are listed in pages; a client that follows them sees each once, in either order and view.
func TestLiveJobsComeInPages(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t)
	var want []core.JobID
	for range 25 {
		want = append(want, s.Submit(func(in *client.Submit) { in.Spec.Hold = true }))
	}
	for _, query := range []string{
		"limit=10", "limit=10&view=brief", "limit=10&newest=1", "limit=10&history=1",
		"limit=10&history=1&newest=1&view=brief",
	} {
		var got []core.JobID
		pages := 0
		for after := core.JobID(0); ; pages++ {
			var page client.JobList
			s.Must("GET", fmt.Sprintf("/api/v1/jobs?%s&after=%d", query, after), nil, &page)
			for i := range page.Jobs {
				got = append(got, page.Jobs[i].ID)
			}
			if !page.More {
				break
			}
			after = page.Next
		}
		if strings.Contains(query, "newest") {
			slices.Reverse(got)
		}
		if !slices.Equal(got, want) || pages != 2 {
			t.Errorf("%s: %d pages, %v", query, pages+1, got)
		}
	}
	list, err := s.Client().Briefs(t.Context(), client.JobsQuery{Limit: 20})
	if err != nil || len(list.Jobs) != 20 {
		t.Errorf("20 of them: %v, %v", list, err)
	}
}

// A body that is announced as larger than the server takes is refused before it comes, and nobody waits for it.
func TestOversizedBodyIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t)
	token := s.Token(core.User{Name: "eve"})
	for _, path := range []string{"/api/v1/jobs", "/api/v1/jobs/cancel", "/api/v1/tokens"} {
		c, err := net.Dial("unix", s.Info.Socket)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n"+
			"Content-Length: 1000000000\r\n\r\n{", path, token)
		// The body's own deadline would be minutes later, by its size.
		if err := c.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusRequestEntityTooLarge {
			t.Errorf("%s: %s", path, resp.Status)
		}
	}
}
