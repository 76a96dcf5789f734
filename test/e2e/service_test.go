//go:build e2e

package e2e

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"bireme.dev/bireme/test/cluster"
)

// replicaVariable makes this program a replica of a service: what it answers.
const replicaVariable = "BIREME_TEST_REPLICA"

// init serves as a replica, in a network of its own, which the first thread of a process must enter before there are
// others.
func init() {
	word := os.Getenv(replicaVariable)
	if word == "" {
		return
	}
	runtime.LockOSThread()
	err := unix.Unshare(unix.CLONE_NEWNET)
	if err == nil {
		err = loopbackUp()
	}
	if err == nil {
		http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				os.Exit(9) // in the middle of a request
			}
			_, _ = io.WriteString(w, word)
		})
		var l net.Listener
		if l, err = net.Listen("tcp4", ":80"); err == nil { // the sockets that it accepts are of the same network
			err = http.Serve(l, nil)
		}
	}
	fmt.Println(err)
	os.Exit(1)
}

func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	ask, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	ask.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, ask)
}

// TestService runs a service of two replicas: it is updated in place and loses a replica while it is asked without a
// pause, and no GET fails.
func TestService(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, cluster.Options{Nodes: 1, CPUs: 4, Memory: "1G"})
	root, web := c.Root(), c.SocketHTTP()
	file := filepath.Join(c.Work, "web.dstack.yml")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	apply := func(word string) {
		t.Helper()
		text := "type: service\nname: web\nruntime: process\nport: 80\nauth: false\nreplicas: 2\n" +
			"probes: [{type: http, url: /, interval: 1s}]\ncommands:\n- " + replicaVariable + "=" + word + " exec " + self + "\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		root.Run("bireme", "apply", "-y", "-d", "-f", file)
	}
	project := ""
	ask := func(method string) (int, string) {
		r, err := http.NewRequest(method, "http://bireme/proxy/services/"+project+"/web/", nil)
		if err != nil {
			return 0, err.Error()
		}
		resp, err := web.Do(r)
		if err != nil {
			return 0, err.Error()
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			return 0, err.Error()
		}
		return resp.StatusCode, string(body)
	}
	apply("one")
	list, err := c.Client(0).Runs(t.Context(), "", "web")
	if err != nil || len(list.Runs) != 1 {
		t.Fatal(list, err)
	}
	project = string(list.Runs[0].Project)
	// ready waits until all replicas are of a version and take requests.
	ready := func(version int32) {
		t.Helper()
		c.Eventually(fmt.Sprintf("two replicas of version %d", version), func() (bool, string) {
			list, err := c.Client(0).Runs(t.Context(), project, "web")
			if err != nil {
				return false, err.Error()
			}
			svc := list.Runs[0].Service
			n := 0
			for _, r := range svc.Replicas {
				if r.Version == version && r.ReadyIn != 0 && r.Draining == 0 {
					n++
				}
			}
			return n == 2 && len(svc.Replicas) == 2, fmt.Sprintf("%+v %s", svc.Replicas, svc.Message)
		})
	}
	ready(0)
	if code, text := ask("GET"); code != 200 || text != "one" {
		t.Fatalf("%d %s", code, text)
	}
	over, ended := make(chan struct{}), make(chan string, 1)
	go func() {
		failed, n := "", 0
		for {
			select {
			case <-over:
				ended <- failed
				return
			default:
			}
			if code, text := ask("GET"); code != 200 {
				failed += fmt.Sprintf("request %d: %d %s\n", n, code, text)
			}
			n++
		}
	}()
	apply("two")
	ready(1)
	if code, text := ask("GET"); code != 200 || text != "two" {
		t.Errorf("after the update: %d %s", code, text)
	}
	if code, text := ask("POST"); code != 502 || !strings.Contains(text, "detail") {
		t.Errorf("a request that kills its replica: %d %s", code, text)
	}
	c.Eventually("the failure in the service's record", func() (bool, string) {
		list, err := c.Client(0).Runs(t.Context(), project, "web")
		if err != nil {
			return false, err.Error()
		}
		message := list.Runs[0].Service.Message
		return strings.Contains(message, "failed"), message
	})
	close(over)
	if failed := <-ended; failed != "" {
		t.Errorf("failed:\n%s", failed)
	}
	resp, err := web.Get("http://bireme/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	wants(t, "metrics", string(text), `bireme_service_requests_total{code="5xx",project="`+project+`",service="web"} 1`)
	root.Run("bireme", "stop", "web")
	c.Eventually("the end of the service", func() (bool, string) {
		code, text := ask("GET")
		return code == 404, text
	})
}
