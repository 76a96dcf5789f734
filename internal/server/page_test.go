package server_test

import (
	"fmt"
	"slices"
	"testing"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/server/servertest"
)

// Ended and live jobs come as one list in pages that leave none out and show none twice.
func TestHistoryPages(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t)
	var want []core.JobID
	for i := range 9 { // no node: they wait; every other one ends
		id := s.Submit(nil)
		want = append(want, id)
		if i%2 == 0 {
			s.Must("POST", "/api/v1/jobs/cancel", client.Cancel{IDs: []string{idText(id)}}, nil)
		}
	}
	for _, view := range []string{"full", "brief"} {
		for _, newest := range []bool{false, true} {
			var got []core.JobID
			path, pages := fmt.Sprintf("/api/v1/jobs?history=1&limit=4&view=%s&newest=%t", view, newest), 0
			for more := true; more; pages++ {
				var list struct {
					Jobs []struct {
						ID core.JobID `json:"id"`
					} `json:"jobs"`
					More bool `json:"more"`
				}
				s.Must("GET", fmt.Sprintf("%s&after=%d", path,
					slices.Max(append([]core.JobID{0}, got[max(0, len(got)-1):]...))), nil, &list)
				for _, j := range list.Jobs {
					got = append(got, j.ID)
				}
				if more = list.More; more && len(list.Jobs) != 4 {
					t.Fatalf("%s newest=%t: a page of %d with more to come", view, newest, len(list.Jobs))
				}
			}
			if newest {
				slices.Reverse(got)
			}
			if !slices.Equal(got, want) || pages != 3 {
				t.Errorf("%s newest=%t: %v in %d pages, want %v in 3", view, newest, got, pages, want)
			}
		}
	}
	last, err := s.Client().Briefs(t.Context(), client.JobsQuery{History: true, Newest: true, Limit: 3})
	if err != nil || len(last.Jobs) != 3 || last.Jobs[0].ID != want[8] || last.Jobs[2].ID != want[6] {
		t.Errorf("the last three: %+v, %v", last, err)
	}
	if status, err := s.Call("GET", "/api/v1/jobs?history=1&after=x", "", nil, nil); status != 400 || err == nil {
		t.Errorf("after=x: %d %v", status, err)
	}
}
