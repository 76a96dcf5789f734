//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/test/cluster"
)

// TestEndsWhileTheServerIsAway: a job that ends while no server is there has its own end, not the time at which it was
// told.
func TestEndsWhileTheServerIsAway(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, cluster.Options{})
	ran, gone, mark := filepath.Join(c.Work, "ran"), filepath.Join(c.Work, "gone"), filepath.Join(c.Work, "mark")
	id := c.As(alice).Sbatch("-o", "/dev/null", "--wrap", "touch "+ran+"; while [ ! -e "+gone+
		" ]; do sleep 0.05; done; touch "+mark)
	c.Eventually("it runs", func() (bool, string) { _, err := os.Stat(ran); return err == nil, fmt.Sprint(err) })
	c.KillServer()
	write(t, gone, "")
	var ended time.Time
	c.Eventually("it has ended, and a while has passed", func() (bool, string) {
		st, err := os.Stat(mark)
		if err != nil {
			return false, err.Error()
		}
		ended = st.ModTime()
		return time.Since(ended) > 5*time.Second, "not yet"
	})
	if err := c.Up(); err != nil {
		t.Fatal(err)
	}
	j := c.WaitState(id, core.Completed)
	if late := j.End.Go().Sub(ended); late < -time.Second || late > 3*time.Second {
		t.Errorf("it ended at %v and is said to have ended %v later", ended, late)
	}
}
