package rest

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/slurm/schema"
)

// native answers the native routes: three pages of jobs, of which the last may fail.
type native struct {
	fails bool
	ahead int // pages that were asked for
}

func (p *native) RoundTrip(r *http.Request) (*http.Response, error) {
	status, body := http.StatusOK, "{}"
	if r.URL.Path == "/api/v1/jobs" {
		p.ahead++
		switch after := r.URL.Query().Get("after"); {
		case after == "2" && p.fails:
			status, body = http.StatusForbidden, `{"error":{"code":"denied","message":"not any more"}}`
		case after == "2":
			body = `{"jobs":[{"id":3,"state":"pending","spec":{"name":"c","shape":{}}}]}`
		case after == "1":
			body = `{"jobs":[{"id":2,"state":"pending","spec":{"name":"b","shape":{}}}],"more":true,"next":2}`
		default:
			body = `{"jobs":[{"id":1,"state":"pending","spec":{"name":"a","shape":{}}}],"more":true,"next":1}`
		}
	}
	return &http.Response{
		StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), Request: r,
		ContentLength: int64(len(body)),
	}, nil
}

// TestJobsComePageByPage: a page of a listing is asked for when the one before is written, and a listing that breaks
// off is none.
func TestJobsComePageByPage(t *testing.T) {
	t.Parallel()
	for _, fails := range []bool{false, true} {
		p := &native{fails: fails}
		c, err := client.New(client.Settings{Servers: []string{"http+insecure://bireme"}}, client.WithTransport(p))
		if err != nil {
			t.Fatal(err)
		}
		api := &API{Client: c, Now: time.Now, Group: func(uint32) string { return "" }}
		var e *Endpoint
		for _, o := range Endpoints() {
			if o.Path == "/slurm/{version}/jobs" && o.Method == http.MethodGet {
				e = &o
			}
		}
		reply := api.Do(&Call{Context: t.Context(), Version: schema.Newest, Query: url.Values{}, Endpoint: e})
		if reply.Status != http.StatusOK || p.ahead != 1 {
			t.Fatalf("%+v: %d pages were asked for before anything was written", reply, p.ahead)
		}
		w := &schema.JSON{}
		reply.Document.Write(w)
		failed := reply.Failed()
		for id, name := range []string{"", "a", "b", "c"} {
			want := id > 0 && (id < 3 || !fails)
			if got := strings.Contains(string(w.Out), fmt.Sprintf(`"name":"%s"`, name)); id > 0 && got != want {
				t.Errorf("fails %v: job %d %q is there: %v", fails, id, name, got)
			}
		}
		if (failed != nil) != fails || fails && failed.Status != http.StatusForbidden {
			t.Errorf("fails %v: %+v", fails, failed)
		}
	}
}
