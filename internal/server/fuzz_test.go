package server_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/server/servertest"
)

// fuzzed is how many calls the fuzzer makes: those of one seed, or with BIREME_SOAK 100,000 under BIREME_SEED.
func fuzzed() (n int, seed uint64) {
	if os.Getenv("BIREME_SOAK") == "" {
		return 2400, 12
	}
	seed, _ = strconv.ParseUint(os.Getenv("BIREME_SEED"), 10, 64)
	return 100_000, seed
}

// attacker calls the server with a token over connections that stay.
type attacker struct {
	t     testing.TB
	s     *servertest.Server
	http  *http.Client
	token string
}

func newAttacker(s *servertest.Server, t testing.TB, token string) *attacker {
	text, err := os.ReadFile(s.CA())
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	return &attacker{t, s, &http.Client{Transport: &http.Transport{
		MaxIdleConnsPerHost: 8, TLSClientConfig: &tls.Config{RootCAs: pool},
		IdleConnTimeout: time.Minute, // below the server's: a call on a connection that it has just closed fails
	}}, token}
}

func (a *attacker) call(at servertest.Attack) (status int, body []byte) {
	req, err := http.NewRequestWithContext(a.t.Context(), at.Method, a.s.Info.API+at.Path, strings.NewReader(at.Body))
	if err != nil {
		a.t.Error(err)
		return 0, nil
	}
	req.Header.Set("Authorization", "Bearer "+a.token)
	resp, err := a.http.Do(req)
	if err != nil {
		a.t.Errorf("%s %s: %v: %.400s", at.Method, at.Path, err, at.Body)
		return 0, nil
	}
	defer resp.Body.Close()
	body, _ = io.ReadAll(resp.Body)
	return resp.StatusCode, body
}

// Every field of what a user can send is filled with what nobody should: no panic, no failure of the server's, no
// effect on another user's jobs, which start as before, and no memory that stays. Not parallel: it measures the memory
// of the process.
func TestHostileBodies(t *testing.T) {
	s := servertest.Start(t, "limits.requests_per_second=0", "limits.requests_burst=0", "limits.requests_in_flight=0",
		"limits.requests_at_once=0", "limits.jobs_per_user=2000")
	node := s.Join("n1", core.Compute, false)
	node.Auto, node.Quiet = true, true
	node.Connect()
	one, two := uint32(1), uint32(2)
	victim := newAttacker(s, t, s.Token(core.User{Name: "victim", UnixName: "daemon", UID: &one}))
	mallory := newAttacker(s, t, s.Token(core.User{Name: "mallory", UnixName: "bin", UID: &two}))

	submit := func(change func(*client.Submit)) core.JobID {
		t.Helper()
		b := submitBody()
		change(b)
		data, _ := json.Marshal(b)
		status, body := victim.call(servertest.Attack{Method: "POST", Path: "/api/v1/jobs", Body: string(data)})
		var made client.Submitted
		if err := json.Unmarshal(body, &made); err != nil || status != 200 {
			t.Fatalf("the victim's submission: %d %s", status, body)
		}
		return made.ID
	}
	victims := []core.JobID{
		submit(func(*client.Submit) {}),
		submit(func(b *client.Submit) { b.Spec.Array = "0-9" }),
		submit(func(b *client.Submit) {
			b.Spec.Hold, b.Spec.Begin = false, core.At(s.Job(1).Submit.Go().AddDate(1, 0, 0))
		}),
		submit(func(b *client.Submit) { b.Components = []core.Spec{{Name: "c"}} }),
	}
	before := records(s, victims)
	n, seed := fuzzed()
	fuzz(t, s, mallory, victims, seed+1, n/8) // what is cached is cached
	heap := settledHeap(s)
	fuzz(t, s, mallory, victims, seed, n)
	if after := records(s, victims); after != before {
		t.Errorf("the victim's jobs were\n%s\nand are\n%s", before, after)
	}
	id := submit(func(b *client.Submit) { b.Spec.Hold = false })
	s.AwaitState(id, core.Completed)
	if now := settledHeap(s); now > heap*3/2+8<<20 {
		t.Errorf("%d MiB of memory before, %d after", heap>>20, now>>20)
	}
	var text []byte
	s.Must("GET", "/metrics", nil, &text)
	if m := regexp.MustCompile(`(?m)^bireme_panics_total (\S+)$`).FindSubmatch(text); m == nil || string(m[1]) != "0" {
		t.Errorf("panics: %s", m)
	}
}

// records is what there is to know of jobs, as text.
func records(s *servertest.Server, ids []core.JobID) string {
	var b bytes.Buffer
	for _, id := range ids {
		j := s.Job(id)
		spec, _ := json.Marshal(j.Spec)
		fmt.Fprintf(&b, "%d %s %v %d %q %s %s\n", id, j.State, j.Flags, j.Priority, j.Message, j.Reason, spec)
	}
	return b.String()
}

// fuzz makes n calls in some connections at once, and takes away what came of them.
func fuzz(t *testing.T, s *servertest.Server, a *attacker, victims []core.JobID, seed uint64, n int) {
	t.Helper()
	const workers, batch = 4, 200
	taken := 0
	for round := 0; round*workers*batch < n; round++ {
		var wg sync.WaitGroup
		var mu sync.Mutex
		for w := range workers {
			wg.Go(func() {
				attacks := servertest.NewAttacks(seed*1_000_003+uint64(round*workers+w), victims)
				var own []core.JobID
				for range batch {
					at := attacks.Next(own)
					status, body := a.call(at)
					var made client.Submitted
					if status == 200 && at.Path == "/api/v1/jobs" && json.Unmarshal(body, &made) == nil && made.ID != 0 {
						own = append(own, made.ID)
					}
					if status >= 500 || status == 0 {
						t.Errorf("seed %d: %s %s gave %d %.300s for %.2000s", seed, at.Method, at.Path, status, body, at.Body)
					}
				}
				mu.Lock()
				taken += len(own)
				mu.Unlock()
			})
		}
		wg.Wait()
		s.Must("POST", "/api/v1/jobs/cancel", client.Cancel{Users: []string{"mallory"}, Cron: true}, nil)
		if t.Failed() {
			return
		}
	}
	if taken < n/200 {
		t.Errorf("only %d of %d calls made a job: the fuzzer does not reach the planner", taken, n)
	}
}

// settledHeap is the memory in use once the attacker's jobs are gone.
func settledHeap(s *servertest.Server) uint64 {
	s.Await("the end of the attacker's jobs", func() bool {
		var list client.JobList
		s.Must("GET", "/api/v1/jobs?user=mallory", nil, &list)
		return len(list.Jobs) == 0
	})
	var m runtime.MemStats
	for range 3 {
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
