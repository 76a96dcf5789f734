package pmi

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"os"
	"strings"
	"sync"
	"testing"
)

// exchange stands for the other nodes: it gives everybody what all put, once all nodes have come.
type exchange struct {
	mu    sync.Mutex
	cond  *sync.Cond
	nodes int
	came  map[int]int
	all   map[string]string
}

func newExchange(nodes int) *exchange {
	x := &exchange{nodes: nodes, came: map[int]int{}, all: map[string]string{}}
	x.cond = sync.NewCond(&x.mu)
	return x
}

func (x *exchange) meet(n int, mine map[string]string) (map[string]string, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	maps.Copy(x.all, mine)
	x.came[n]++
	x.cond.Broadcast()
	for x.came[n] < x.nodes {
		x.cond.Wait()
	}
	return maps.Clone(x.all), nil
}

// two nodes of two tasks each.
func twoNodes(t *testing.T, abort func(int32, int, string)) []*os.File {
	t.Helper()
	x := newExchange(2)
	var tasks []*os.File
	for node := range 2 {
		n, err := New(Config{
			Job: "7.0", Size: 4, Ranks: []int32{int32(2 * node), int32(2*node + 1)}, Mapping: Mapping([]int32{2, 2}),
			Exchange: x.meet, Abort: abort,
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(n.Close)
		tasks = append(tasks, n.Socket(0), n.Socket(1))
		if got := strings.Join(n.Env(1, 9), " "); got != fmt.Sprintf("PMI_FD=9 PMI_JOBID=7.0 PMI_RANK=%d PMI_SIZE=4",
			2*node+1) {
			t.Errorf("environment %q", got)
		}
	}
	return tasks
}

func TestFirst(t *testing.T) {
	t.Parallel()
	var wg sync.WaitGroup
	for rank, f := range twoNodes(t, nil) {
		wg.Go(func() {
			in := bufio.NewReader(f)
			for _, x := range [][2]string{
				{"cmd=init pmi_version=1 pmi_subversion=1", "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0"},
				{"cmd=get_maxes", "cmd=maxes kvsname_max=256 keylen_max=256 vallen_max=4096"},
				{"cmd=get_my_kvsname", "cmd=my_kvsname kvsname=7.0"},
				{"cmd=get kvsname=7.0 key=PMI_process_mapping", "cmd=get_result rc=0 msg=success value=(vector,(0,2,2))"},
				{fmt.Sprintf("cmd=put kvsname=7.0 key=k%d value=a card of %d", rank, rank), "cmd=put_result rc=0 msg=success"},
				{"cmd=barrier_in", "cmd=barrier_out rc=0"},
				{"cmd=get kvsname=7.0 key=k0", "cmd=get_result rc=0 msg=success value=a card of 0"},
				{"cmd=get kvsname=7.0 key=k3", "cmd=get_result rc=0 msg=success value=a card of 3"},
				{"cmd=get kvsname=7.0 key=nix", "cmd=get_result rc=-1 msg=key_nix_not_found value=unknown"},
				{"cmd=barrier_in", "cmd=barrier_out rc=0"},
				{"cmd=finalize", "cmd=finalize_ack"},
			} {
				fmt.Fprintln(f, x[0])
				if got, err := in.ReadString('\n'); err != nil || strings.TrimSpace(got) != x[1] {
					t.Errorf("rank %d: %s: %q, %v; want %q", rank, x[0], got, err, x[1])
					return
				}
			}
		})
	}
	wg.Wait()
}

func TestSecond(t *testing.T) {
	t.Parallel()
	var wg sync.WaitGroup
	for rank, f := range twoNodes(t, nil) {
		wg.Go(func() {
			in := bufio.NewReader(f)
			fmt.Fprintln(f, "cmd=init pmi_version=2 pmi_subversion=0")
			if got, err := in.ReadString('\n'); err != nil ||
				got != "cmd=response_to_init pmi_version=2 pmi_subversion=0 rc=0\n" {
				t.Errorf("rank %d: init: %q, %v", rank, got, err)
				return
			}
			for _, x := range [][2]string{
				{
					"cmd=fullinit;pmirank=0;threaded=FALSE;",
					fmt.Sprintf(
						"cmd=fullinit-response;pmi-version=2;pmi-subversion=0;rank=%d;size=4;appnum=0;debugged=FALSE;"+
							"pmiverbose=FALSE;rc=0;", rank),
				},
				{
					"cmd=info-getjobattr;key=PMI_process_mapping;",
					"cmd=info-getjobattr-response;found=TRUE;value=(vector,(0,2,2));rc=0;",
				},
				{fmt.Sprintf("cmd=kvs-put;key=k%d;value=x;;%d;", rank, rank), "cmd=kvs-put-response;rc=0;"},
				{"cmd=kvs-fence;", "cmd=kvs-fence-response;rc=0;"},
				{"cmd=kvs-get;jobid=7.0;srcid=-1;key=k3;", "cmd=kvs-get-response;found=TRUE;value=x;;3;rc=0;"},
				{"cmd=kvs-get;jobid=7.0;srcid=-1;key=nix;", "cmd=kvs-get-response;found=FALSE;rc=0;"},
				{"cmd=finalize;", "cmd=finalize-response;rc=0;"},
			} {
				fmt.Fprintf(f, "%6d%s", len(x[0]), x[0])
				head := make([]byte, 6)
				var size int
				if _, err := io.ReadFull(in, head); err != nil {
					t.Errorf("rank %d: %s: %v", rank, x[0], err)
					return
				}
				fmt.Sscan(string(head), &size)
				body := make([]byte, size)
				if _, err := io.ReadFull(in, body); err != nil || string(body) != x[1] {
					t.Errorf("rank %d: %s: %q, %v; want %q", rank, x[0], body, err, x[1])
					return
				}
			}
		})
	}
	wg.Wait()
}

func TestAbortAndNonsense(t *testing.T) {
	t.Parallel()
	told := make(chan string, 1)
	tasks := twoNodes(t, func(rank int32, code int, message string) { told <- fmt.Sprint(rank, " ", code) })
	fmt.Fprintln(tasks[2], "cmd=init pmi_version=1 pmi_subversion=1")
	fmt.Fprintln(tasks[2], "cmd=abort exitcode=13")
	if got := <-told; got != "2 13" {
		t.Errorf("aborted by %q", got)
	}
	fmt.Fprintln(tasks[0], "what is this")
	if _, err := tasks[0].Read(make([]byte, 1)); err == nil {
		t.Error("nonsense was answered")
	}
	fmt.Fprintln(tasks[1], "cmd=barrier_in") // its neighbor is gone: it must not wait forever
	if n, err := tasks[1].Read(make([]byte, 64)); err == nil {
		t.Errorf("a barrier without the neighbour was passed: %d bytes", n)
	}
}

func TestMapping(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		counts []int32
		want   string
	}{{[]int32{4}, "(vector,(0,1,4))"}, {[]int32{2, 2, 1}, "(vector,(0,2,2),(2,1,1))"}} {
		if got := Mapping(x.counts); got != x.want {
			t.Errorf("%v: %s, want %s", x.counts, got, x.want)
		}
	}
}

func FuzzFirst(f *testing.F) {
	f.Add("cmd=put key=a value=b")
	f.Add("mcmd=spawn")
	f.Fuzz(func(t *testing.T, text string) {
		n := &Node{
			cfg: Config{Job: "1.0", Size: 1, Ranks: []int32{0}, Exchange: func(_ int, m map[string]string) (
				map[string]string, error,
			) {
				return m, nil
			}, Abort: func(int32, int, string) {}},
			keys: map[string]string{}, fresh: map[string]string{}, attrs: map[string]string{}, names: map[string]string{},
		}
		n.cond = sync.NewCond(&n.mu)
		c := &call{n: n, in: newLines(strings.NewReader("endcmd\n")), out: io.Discard}
		_ = c.first(text) // it must not panic
		_ = c.second(text)
	})
}

// TestBytes: what tasks put is the keeper's memory, which is everybody's on the node: it is bounded for a step, and
// given back.
func TestBytes(t *testing.T) {
	before := total.Load() // not in parallel with others, who hold some too
	n, err := New(Config{Job: "7.0", Size: 1, Ranks: []int32{0}})
	if err != nil {
		t.Fatal(err)
	}
	value := strings.Repeat("x", maxValue)
	put := 0
	for ; err == nil && put < 2*maxBytes/maxValue; put++ {
		err = n.put(fmt.Sprint("key", put), value)
	}
	if err == nil || !strings.Contains(err.Error(), "bytes at most") || int64(put)*maxValue > maxBytes+maxValue {
		t.Errorf("%d values of %d bytes were taken: %v", put, maxValue, err)
	}
	if err := n.put("key0", value); err != nil {
		t.Errorf("a value in the place of another: %v", err)
	}
	n.Close()
	n.Close()
	if after := total.Load(); after != before {
		t.Errorf("%d bytes were held before, %d are after", before, after)
	}
}
