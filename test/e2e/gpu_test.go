//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/test/cluster"
)

// fakeSMI stands in for nvidia-smi: it prints a file, which the test edits.
const fakeSMI = `#!/bin/sh
case "$*" in
"-q -x") cat "${0%/*}/now.xml" ;;
*) exit 1 ;;
esac
`

// fakeGPU is a machine whose one GPU is told by a fake nvidia-smi to be the recorded H200, with a device file of its
// own: another file for /dev/full.
type fakeGPU struct {
	t     *testing.T
	tools string
	xml   string
	file  string
}

func newFakeGPU(t *testing.T) *fakeGPU {
	t.Helper()
	minor := 90000 + os.Getpid()%10000
	g := &fakeGPU{t: t, tools: t.TempDir(), file: fmt.Sprintf("/dev/nvidia%d", minor)}
	if err := os.Chmod(g.tools, 0o755); err != nil {
		t.Fatal(err)
	}
	g.xml = strings.Replace(read(t, "../../internal/agent/gpu/testdata/nvidia-h200-recorded.xml"), "<minor_number>0<",
		fmt.Sprintf("<minor_number>%d<", minor), 1)
	write(t, filepath.Join(g.tools, "nvidia-smi"), fakeSMI)
	g.says()
	if err := unix.Mknod(g.file, unix.S_IFCHR|0o666, int(unix.Mkdev(1, 7))); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Remove(g.file) })
	return g
}

// says edits what nvidia-smi prints.
func (g *fakeGPU) says(pairs ...string) {
	g.t.Helper()
	for i := 0; i+1 < len(pairs); i += 2 {
		if !strings.Contains(g.xml, pairs[i]) {
			g.t.Fatalf("it does not say %q", pairs[i])
		}
		g.xml = strings.Replace(g.xml, pairs[i], pairs[i+1], 1)
	}
	next := filepath.Join(g.tools, "next.xml")
	write(g.t, next, g.xml)
	if err := os.Rename(next, filepath.Join(g.tools, "now.xml")); err != nil {
		g.t.Fatal(err)
	}
}

// fakeExporter stands in for dcgm-exporter: it tells of the GPU and of one that is not the machine's. It gives its
// address.
func fakeExporter(t *testing.T, uuid string) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "# HELP DCGM_FI_DEV_SM_CLOCK SM clock frequency (in MHz).\n# TYPE DCGM_FI_DEV_SM_CLOCK gauge\n"+
			"DCGM_FI_DEV_SM_CLOCK{gpu=\"0\",UUID=%q} 1980\nDCGM_FI_DEV_SM_CLOCK{gpu=\"1\",UUID=\"GPU-elsewhere\"} 345\n", uuid)
	}))
	t.Cleanup(s.Close)
	return s.URL + "/metrics"
}

// TestGPU follows a machine with one GPU: found, given to one job at a time and hidden from others, sampled, sick and
// well.
func TestGPU(t *testing.T) {
	t.Parallel()
	g := newFakeGPU(t)
	exporter := fakeExporter(t, "GPU-f148849c-2d39-072e-e92c-e14fcadd1ce0")
	c := cluster.Start(t, cluster.Options{
		Tools: g.tools, Set: []string{"gpu.sample=100ms", "gpu.dcgm_exporter=" + exporter},
	})
	root := c.Root()
	node := strings.Fields(root.Run("bireme", "nodes"))[8]
	wants(t, "bireme nodes", root.Run("bireme", "nodes"), "gpu:h200:0/1")
	wants(t, "scontrol show node", root.Run("scontrol", "show", "node"), "Gres=gpu:h200:1")

	out := filepath.Join(c.Work, "without")
	c.WaitEnd(root.Sbatch("-o", out, "--wrap", "cat <"+g.file+" >/dev/null 2>&1; head -c1 "+g.file+
		" || :; echo cuda=$CUDA_VISIBLE_DEVICES"))
	wants(t, "a job without GPUs", read(t, out), "Operation not permitted", "cuda=\n")

	out = filepath.Join(c.Work, "with")
	g.says("<gpu_util>0 %<", "<gpu_util>97 %<", "<used>0 MiB<", "<used>61000 MiB<")
	has := root.Sbatch("--gres=gpu:h200:1", "-o", out, "--wrap", "head -c1 "+g.file+
		" | wc -c; echo cuda=$CUDA_VISIBLE_DEVICES; while [ ! -e "+out+".end ]; do sleep 0.1; done")
	c.WaitFile(out, "1\ncuda=0\n")
	waits := root.Sbatch("--gres=gpu:1", "-o", "/dev/null", "--wrap", "true")
	c.Eventually("samples of the job", func() (bool, string) {
		r := root.Try("bireme", "metrics", has, "--json")
		var m client.Metrics
		if r.Code != 0 || json.Unmarshal([]byte(r.Out), &m) != nil || len(m.Samples) < 2 || len(m.Samples[1].GPUs) != 1 {
			return false, r.String()
		}
		u := m.Samples[len(m.Samples)-1].GPUs[0]
		return u.Util == 97 && u.Mem == 61000*core.MiB && m.GPUs[0].Memory == 143771*core.MiB, r.Out
	})
	wants(t, "bireme metrics", root.Run("bireme", "metrics", has), "gpu 0", "97%", "59.6G", "140.4G")
	wants(t, "squeue", root.Run("squeue", "-h", "-j", waits), "(Resources)")
	socket := strings.TrimPrefix(strings.Split(c.Env[0], ",")[0], "BIREME_SERVER=unix:")
	web := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}}
	defer web.CloseIdleConnections()
	c.Eventually("what dcgm-exporter says, with whose GPU it is", func() (bool, string) {
		r, err := web.Get("http://bireme/metrics/dcgm")
		if err != nil {
			return false, err.Error()
		}
		defer r.Body.Close()
		b, err := io.ReadAll(r.Body)
		return err == nil && strings.Contains(string(b), `DCGM_FI_DEV_SM_CLOCK{bireme_node="`+node+`",bireme_job="`+has+
			`"`) && !strings.Contains(string(b), "GPU-elsewhere"), string(b)
	})

	g.says("<remapped_row_pending>No<", "<remapped_row_pending>Yes<")
	c.WaitNode(node, "a warning", func(n *client.Node) bool {
		return strings.Contains(n.Warning, "remapped") && n.State == "MIXED"
	})
	g.says("<dram_uncorrectable>0<", "<dram_uncorrectable>3<")
	c.WaitNode(node, "drained", func(n *client.Node) bool {
		return n.Flags.Has(core.NodeDrain) && strings.HasPrefix(n.Reason, "gpu 0: 3 uncorrectable ECC errors in memory")
	})
	wants(t, "scontrol show node", root.Run("scontrol", "show", "node"),
		"Reason=gpu 0: 3 uncorrectable ECC errors in memory", "[bireme@")
	wants(t, "why", root.Run("bireme", "why", waits), "out of use", "3 uncorrectable ECC errors")

	write(t, out+".end", "")
	c.WaitEnd(has)
	wants(t, "sacct", root.Run("sacct", "-n", "-P", "-j", has+".batch", "-o", "tresusageinmax"),
		"gres/gpumem=61000M,gres/gpuutil=97")
	if s := c.Job(waits).State; s != core.Pending {
		t.Errorf("a job was given a sick GPU: %v", s)
	}
	g.says("<dram_uncorrectable>3<", "<dram_uncorrectable>0<", "<remapped_row_pending>Yes<", "<remapped_row_pending>No<")
	if j := c.WaitEnd(waits); j.State != core.Completed {
		t.Errorf("after it is well: %v %s", j.State, j.Message)
	}
	c.WaitNode(node, "well", func(n *client.Node) bool { return n.Flags == 0 && n.Reason == "" && n.Warning == "" })
}

// TestFakeGPUs: GPUs that are not there are offered, by their memory too, and called what they are.
func TestFakeGPUs(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, cluster.Options{Args: []string{"--fake-gpus", "H100:80GB:2"}})
	wants(t, "bireme nodes", c.Root().Run("bireme", "nodes"), "gpu:h100:0/2", "its GPUs are fake")
	out := filepath.Join(c.Work, "fake")
	if j := c.WaitEnd(c.Root().Sbatch("--gres=gpu:h100:2", "-o", out, "--wrap",
		"echo $CUDA_VISIBLE_DEVICES")); j.State != core.Completed {
		t.Fatalf("%v %s", j.State, j.Message)
	}
	wants(t, "the job", read(t, out), "0,1\n")
	for gpu, says := range map[string]string{
		"80GB..:2": "cuda=0,1", "H100:1": "cuda=0",
		"A100,H100:40GB..80GB": "cuda=0", "100GB..:1": "100 GB or more", "A100,H200:1": "A100 or H200",
	} {
		file := write(t, filepath.Join(c.Work, "gpu.yml"),
			"type: task\nname: by-gpu\ncommands: [echo cuda=$CUDA_VISIBLE_DEVICES]\n"+
				"resources: {cpu: 1, memory: 1GB.., disk: 1GB.., gpu: '"+gpu+"'}\n")
		r := c.Root().Try("bireme", "apply", "-y", "-f", file)
		wants(t, gpu+": "+r.Line, r.Out+r.Err, says)
	}
}
