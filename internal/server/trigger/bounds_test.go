package trigger

import (
	"bytes"
	"context"
	"os"
	"strconv"
	"strings"
	"testing"

	"bireme.dev/bireme/internal/nice"
)

// TestBounds: a user's program cannot have the memory of the server's host, nor fill it with processes.
func TestBounds(t *testing.T) {
	t.Parallel()
	uid := uint32(os.Geteuid())
	if uid == 0 {
		uid = 65534
	}
	var out bytes.Buffer
	show := []string{"/bin/cat", "/proc/self/limits", "/proc/self/oom_score_adj"}
	c, err := command(context.Background(), uid, show, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.stop()
	if c.Stdout = &out; nice.Run(c.Cmd) != nil {
		t.Fatal(out.String())
	}
	limits := map[string]string{}
	for line := range strings.Lines(out.String()) {
		for _, name := range []string{"Max data size", "Max processes", "Max core file size"} {
			if rest, ok := strings.CutPrefix(line, name); ok {
				limits[name] = strings.Fields(rest)[1] // the hard one
			}
		}
	}
	tasks, err := strconv.Atoi(limits["Max processes"])
	if limits["Max data size"] != strconv.Itoa(maxData<<10) || limits["Max core file size"] != "0" || err != nil ||
		tasks < maxTasks || !strings.HasSuffix(out.String(), "\n1000\n") {
		t.Errorf("%v: %s", err, out.String())
	}
}
