package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// limits is what the machine itself allows.
type limits struct {
	rpc1, rpc32 float64 // HTTP round trips a second over a unix socket with an 8 KiB body, 1 and 32 clients
	fsync       float64 // sequential 8 KiB writes made durable a second
	fork        float64 // script + sh + output file a second, four at a time, from one long-lived parent
	forkCPU     time.Duration
}

func measureLimits(ctx context.Context) (limits, error) {
	var l limits
	dir, err := os.MkdirTemp(scratch, "limits-")
	if err != nil {
		return l, err
	}
	if l.rpc1, err = rpcLimit(ctx, dir, 1, 2*time.Second); err != nil {
		return l, err
	}
	if l.rpc32, err = rpcLimit(ctx, dir, 32, 3*time.Second); err != nil {
		return l, err
	}
	if l.fsync, err = fsyncLimit(dir, 2*time.Second); err != nil {
		return l, err
	}
	if l.fork, l.forkCPU, err = forkLimit(dir, 3000); err != nil {
		return l, err
	}
	progress("  limit: %.0f and %.0f round trips/s (1 and 32 clients), %.0f fsync/s, %.0f forked jobs/s at %.2f ms "+
		"CPU each",
		l.rpc1, l.rpc32, l.fsync, l.fork, l.forkCPU.Seconds()*1e3)
	return l, nil
}

// rpcLimit answers POSTs of a job's size with nothing behind them.
func rpcLimit(ctx context.Context, dir string, clients int, d time.Duration) (float64, error) {
	sock := filepath.Join(dir, fmt.Sprintf("rpc%d.sock", clients))
	ln, err := net.Listen("unix", sock)
	if err != nil {
		return 0, err
	}
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Write([]byte(`{"id":1}`))
	})}
	go srv.Serve(ln)
	defer srv.Close()
	body := bytes.Repeat([]byte("x"), 9<<10)
	var n atomic.Int64
	until := time.Now().Add(d)
	var wg sync.WaitGroup
	for range clients {
		hc := unixClient(sock)
		wg.Go(func() {
			for time.Now().Before(until) && ctx.Err() == nil {
				resp, err := hc.Post("http://x/", "application/json", bytes.NewReader(body))
				if err != nil {
					return
				}
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
				n.Add(1)
			}
		})
	}
	wg.Wait()
	return float64(n.Load()) / d.Seconds(), nil
}

func unixClient(sock string) *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", sock)
	}, MaxIdleConnsPerHost: 64}}
}

func fsyncLimit(dir string, d time.Duration) (float64, error) {
	f, err := os.Create(filepath.Join(dir, "sync"))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	buf := make([]byte, 8<<10)
	n := 0
	for until := time.Now().Add(d); time.Now().Before(until); n++ {
		if _, err := f.Write(buf); err != nil {
			return 0, err
		}
		if err := syscall.Fdatasync(int(f.Fd())); err != nil {
			return 0, err
		}
	}
	return float64(n) / d.Seconds(), nil
}

// forkLimit runs n jobs as a bare parent would: script file, interpreter, output file, four at a time.
func forkLimit(dir string, n int) (perSecond float64, cpu time.Duration, err error) {
	var next atomic.Int64
	var wg sync.WaitGroup
	var failed atomic.Pointer[error]
	before, began := selfCPU(), time.Now()
	for range 4 {
		wg.Go(func() {
			for i := next.Add(1); i <= int64(n); i = next.Add(1) {
				if err := forkOne(dir, i); err != nil {
					failed.Store(&err)
					return
				}
			}
		})
	}
	wg.Wait()
	took := time.Since(began)
	if e := failed.Load(); e != nil {
		return 0, 0, *e
	}
	return float64(n) / took.Seconds(), (selfCPU() - before) / time.Duration(n), nil
}

func forkOne(dir string, i int64) error {
	path := filepath.Join(dir, fmt.Sprintf("job%d.sh", i))
	syscall.ForkLock.RLock() // a child forked meanwhile would hold the script open for writing: text file busy
	err := os.WriteFile(path, []byte(scriptOf("bench", i)), 0o700)
	syscall.ForkLock.RUnlock()
	if err != nil {
		return err
	}
	out, err := os.Create(filepath.Join(dir, fmt.Sprintf("job%d.out", i)))
	if err != nil {
		return err
	}
	defer out.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	defer null.Close()
	p, err := os.StartProcess(path, []string{path}, &os.ProcAttr{
		Dir: dir, Env: envOf(i),
		Files: []*os.File{null, out, out}, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return err
	}
	_, err = p.Wait()
	return err
}

// selfCPU is the CPU time of this process and its children that were waited for.
func selfCPU() time.Duration {
	var d time.Duration
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if syscall.Getrusage(who, &u) == nil {
			d += time.Duration(u.Utime.Nano() + u.Stime.Nano())
		}
	}
	return d
}
