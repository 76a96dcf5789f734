//go:build e2e

package containers

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"bireme.dev/bireme/test/cluster"
)

// TestSSH attaches to a running container with the tools people have.
func TestSSH(t *testing.T) {
	c := start(t, cluster.Options{})
	p := c.Root()
	// The image has no rsync; the machine's own, with what it needs, is shown to it.
	r := apply(t, p, c.Work, "desk", `image: box:1
env: [SECRET=s3cr3t]
volumes: ["/usr:/usr", "/lib:/lib", "/lib64:/lib64"]
commands: ["echo page > /tmp/page; httpd -p 127.0.0.1:8080 -h /tmp", echo up, sleep 1000]
`, "-d")
	if r.Code != 0 {
		t.Fatalf("%v", r)
	}
	c.Eventually("it runs", func() (bool, string) {
		out := p.Try("bireme", "logs", "desk")
		return out.Out == "up\n", out.String()
	})
	config := filepath.Join(c.Work, "ssh_config")
	if err := os.WriteFile(config, []byte(p.Run("bireme", "ssh", "--config", "desk")), 0o600); err != nil {
		t.Fatal(err)
	}
	// tool runs one of the machine's programs as root of the cluster.
	tool := func(stdin string, argv ...string) (string, int) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
		cmd.Env = append(append(os.Environ(), c.Env...), "RSYNC_RSH=ssh -F "+config)
		cmd.Stdin = strings.NewReader(stdin)
		out, err := cmd.CombinedOutput()
		if err != nil && cmd.ProcessState == nil {
			t.Fatal(err)
		}
		return string(out), cmd.ProcessState.ExitCode()
	}
	for name, tc := range map[string]struct {
		stdin string
		argv  []string
		want  string
		code  int
	}{
		"command":  {"", []string{"ssh", "-F", config, "desk", "echo $SECRET; exit 3"}, "s3cr3t\n", 3},
		"input":    {"a\nb\n", []string{"ssh", "-F", config, "desk", "wc -l"}, "2\n", 0},
		"terminal": {"", []string{"ssh", "-F", config, "-tt", "desk", "test -t 0 && echo terminal"}, "terminal\r\n", 0},
		"forward": {
			"GET /page HTTP/1.0\r\n\r\n",
			[]string{"ssh", "-F", config, "-W", "127.0.0.1:8080", "desk"},
			"page\n", 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got, code := tool(tc.stdin, tc.argv...); code != tc.code || !strings.HasSuffix(got, tc.want) {
				t.Errorf("%v: exit status %d, %q", tc.argv, code, got)
			}
		})
	}
	t.Run("bireme ssh", func(t *testing.T) {
		if r := p.Try("bireme", "ssh", "desk", "echo $SECRET; exit 4"); r.Code != 4 || r.Out != "s3cr3t\n" {
			t.Errorf("%v", r)
		}
	})
	t.Run("remote forward", func(t *testing.T) {
		web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, "from home")
		}))
		defer web.Close()
		got, code := tool("", "ssh", "-F", config, "-R", "9911:"+strings.TrimPrefix(web.URL, "http://"), "desk",
			"wget -qO- http://127.0.0.1:9911/")
		if got != "from home" || code != 0 {
			t.Errorf("exit status %d, %q", code, got)
		}
	})
	data := strings.Repeat("0123456789abcdef", 1<<16) // 1 MiB
	from := filepath.Join(c.Work, "from")
	if err := os.WriteFile(from, []byte(data), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, argv := range map[string][2][]string{
		"scp":   {{"scp", "-q", "-F", config, from, "desk:/tmp/scp"}, {"scp", "-q", "-F", config, "desk:/tmp/scp", "TO"}},
		"rsync": {{"rsync", "-a", from, "desk:/tmp/rsync"}, {"rsync", "-a", "desk:/tmp/rsync", "TO"}},
	} {
		t.Run(name, func(t *testing.T) {
			to := filepath.Join(c.Work, "to-"+name)
			argv[1][len(argv[1])-1] = to
			for _, a := range argv {
				if out, code := tool("", a...); code != 0 {
					t.Fatalf("%v: exit status %d: %s", a, code, out)
				}
			}
			if b, err := os.ReadFile(to); err != nil || string(b) != data {
				t.Errorf("what came back has %d bytes, want %d: %v", len(b), len(data), err)
			}
		})
	}
	// Others do not get in, and ended jobs have no door.
	if r := c.As(alice).Try("bireme", "ssh", jobOf(t, c, "desk"), "id"); r.Code == 0 {
		t.Errorf("another's container: %v", r)
	}
	p.Run("bireme", "stop", "-y", "desk")
	c.WaitEnd(jobOf(t, c, "desk"))
	if r := p.Try("bireme", "ssh", "desk", "id"); r.Code == 0 || !strings.Contains(r.Err, "has ended") {
		t.Errorf("an ended job's container: %v", r)
	}
	left(t, c)
}
