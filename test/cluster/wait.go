package cluster

import (
	"fmt"
	"os"
	"strings"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
)

// Eventually looks again and again until a state is there. look tells what it saw, for the message when it never comes.
func (c *Cluster) Eventually(what string, look func() (ok bool, saw string)) {
	c.T.Helper()
	c.Within(patience, what, look)
}

// Within is Eventually with a bound of its own.
func (c *Cluster) Within(bound time.Duration, what string, look func() (ok bool, saw string)) {
	c.T.Helper()
	began, gap := time.Now(), 2*time.Millisecond
	for {
		ok, saw := look()
		if ok {
			return
		}
		if time.Since(began) > bound {
			c.T.Fatalf("not in %v: %s; last seen: %s", bound, what, saw)
		}
		t := time.NewTimer(gap)
		select {
		case <-c.T.Context().Done():
			t.Stop()
			c.T.Fatalf("%s: %v", what, c.T.Context().Err())
		case <-t.C:
		}
		gap = min(gap*3/2, 100*time.Millisecond)
	}
}

// Job returns a job as it is.
func (c *Cluster) Job(id string) *client.Job {
	c.T.Helper()
	j, err := c.job(id)
	if err != nil {
		c.T.Fatalf("job %s: %v", id, err)
	}
	return j
}

func (c *Cluster) job(id string) (*client.Job, error) {
	list, err := c.Client(patience).Job(c.T.Context(), id)
	if err != nil {
		return nil, err
	}
	if len(list.Jobs) == 0 {
		return nil, fmt.Errorf("the answer holds no job")
	}
	return &list.Jobs[0], nil
}

// WaitState waits until a job is in one of some states.
func (c *Cluster) WaitState(id string, states ...core.JobState) *client.Job {
	c.T.Helper()
	var j *client.Job
	c.Eventually(fmt.Sprintf("job %s is %v", id, states), func() (bool, string) {
		var err error
		if j, err = c.job(id); err != nil {
			return false, err.Error()
		}
		for _, s := range states {
			if j.State == s {
				return true, ""
			}
		}
		return false, fmt.Sprintf("%v %s %s", j.State, j.Waiting, j.Message)
	})
	return j
}

// WaitEnd waits until a job has ended and holds nothing on any node.
func (c *Cluster) WaitEnd(id string) *client.Job {
	c.T.Helper()
	var j *client.Job
	c.Eventually("job "+id+" has ended", func() (bool, string) {
		var err error
		if j, err = c.job(id); err != nil {
			return false, err.Error()
		}
		return j.State.Final() && !j.Live(), fmt.Sprintf("%v flags %b %s %s", j.State, j.Flags, j.Waiting, j.Message)
	})
	return j
}

// WaitFile waits until a file holds a text and gives all of it.
func (c *Cluster) WaitFile(path, text string) string {
	c.T.Helper()
	var data []byte
	c.Eventually(fmt.Sprintf("%s holds %q", path, text), func() (bool, string) {
		var err error
		if data, err = os.ReadFile(path); err != nil {
			return false, err.Error()
		}
		return strings.Contains(string(data), text), string(data)
	})
	return string(data)
}

// WaitNode waits until a node is as asked.
func (c *Cluster) WaitNode(name, what string, is func(*client.Node) bool) {
	c.T.Helper()
	c.Eventually("node "+name+" is "+what, func() (bool, string) {
		n, err := c.Client(patience).Node(c.T.Context(), core.NodeName(name))
		if err != nil {
			return false, err.Error()
		}
		return is(n), fmt.Sprintf("%s connected=%v flags=%b", n.State, n.Connected, n.Flags)
	})
}
