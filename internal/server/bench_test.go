package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/server/servertest"
)

func benchBodies(b *testing.B, n int) [][]byte {
	b.Helper()
	out := make([][]byte, n)
	for k := range out {
		in := client.Submit{
			Spec:   core.Spec{Name: "bench", Hold: true, IO: core.IO{WorkDir: "/home/ann", Stdout: "slurm-%j.out"}},
			Script: fmt.Sprintf("#!/bin/sh\n# %d\n", k) + strings.Repeat("echo hello world, how are you\n", 68),
			Key:    client.NewKey(),
		}
		for i := range 60 {
			in.Env = append(in.Env, fmt.Sprintf("VARIABLE_%02d=%d%s", i, k, strings.Repeat("x", 84)))
		}
		var err error
		if out[k], err = json.Marshal(in); err != nil {
			b.Fatal(err)
		}
	}
	return out
}

func socketClient(s *servertest.Server) *http.Client {
	return &http.Client{Transport: &http.Transport{
		MaxIdleConnsPerHost: 64,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", s.Info.Socket)
		},
	}}
}

// BenchmarkSubmit is durable submissions of unique jobs (2 KiB script, 6 KiB environment) over the unix socket.
func BenchmarkSubmit(b *testing.B) {
	for _, clients := range []int{1, 32} {
		b.Run(fmt.Sprint("clients=", clients), func(b *testing.B) {
			s := servertest.Start(b)
			h := socketClient(s)
			defer h.CloseIdleConnections()
			all := benchBodies(b, b.N)
			var next atomic.Int64
			b.SetParallelism(max(1, clients/2))
			if clients == 1 {
				b.SetParallelism(1)
			}
			b.ResetTimer()
			post := func() {
				body := all[int(next.Add(1)-1)%len(all)]
				resp, err := h.Post("http://bireme/api/v1/jobs", "application/json", bytes.NewReader(body))
				if err != nil {
					b.Error(err)
					return
				}
				text, _ := io.ReadAll(resp.Body)
				resp.Body.Close()
				if resp.StatusCode != 200 {
					b.Errorf("%s %s", resp.Status, text)
				}
			}
			if clients == 1 {
				for range b.N {
					post()
				}
			} else {
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						post()
					}
				})
			}
			b.StopTimer()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
		})
	}
}

// BenchmarkBriefs lists 50,000 pending jobs.
func BenchmarkBriefs(b *testing.B) {
	s := servertest.Start(b)
	h := socketClient(s)
	defer h.CloseIdleConnections()
	body, err := json.Marshal(client.Submit{Spec: core.Spec{Name: "bench", TimeLimit: 3600}, Script: "#!/bin/sh\n"})
	if err != nil {
		b.Fatal(err)
	}
	work := make(chan struct{})
	done := make(chan struct{})
	for range 32 {
		go func() {
			for range work {
				resp, err := h.Post("http://bireme/api/v1/jobs", "application/json", bytes.NewReader(body))
				if err != nil {
					b.Error(err)
					continue
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
			done <- struct{}{}
		}()
	}
	for range 50_000 {
		work <- struct{}{}
	}
	close(work)
	for range 32 {
		<-done
	}
	b.ResetTimer()
	for range b.N {
		resp, err := h.Get("http://bireme/api/v1/jobs?view=brief")
		if err != nil {
			b.Fatal(err)
		}
		n, err := io.Copy(io.Discard, resp.Body)
		if err != nil {
			b.Fatal(err)
		}
		resp.Body.Close()
		b.SetBytes(n)
	}
}

// BenchmarkNullAgents is the control plane alone: jobs that agents end at once, from submission to the last commit.
func BenchmarkNullAgents(b *testing.B) {
	s := servertest.Start(b, "timers.heartbeat=5s", "timers.silent_after=60s")
	for i := range 64 {
		n := s.Join(core.NodeName(fmt.Sprintf("b%02d", i)), core.Compute, false)
		n.Auto, n.Quiet = true, true
		n.Connect()
	}
	h := socketClient(s)
	defer h.CloseIdleConnections()
	in := client.Submit{
		Spec:   core.Spec{Name: "null", IO: core.IO{WorkDir: "/", Stdout: "/dev/null"}},
		Script: "#!/bin/sh\n" + strings.Repeat("echo hello world, how are you\n", 68),
	}
	for i := range 60 {
		in.Env = append(in.Env, fmt.Sprintf("VARIABLE_%02d=%s", i, strings.Repeat("x", 84)))
	}
	body, err := json.Marshal(in)
	if err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	b.SetParallelism(16)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			resp, err := h.Post("http://bireme/api/v1/jobs", "application/json", bytes.NewReader(body))
			if err != nil {
				b.Error(err)
				return
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			if resp.StatusCode != 200 {
				b.Error(resp.Status)
			}
		}
	})
	s.Await("all jobs to end", func() bool {
		var c client.Cluster
		s.Must("GET", "/api/v1/cluster", nil, &c)
		return len(c.Jobs) == 0
	})
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
}
