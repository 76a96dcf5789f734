package sshdoor

import (
	"net/http"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"bireme.dev/bireme/internal/core"
)

// A connection ends, with what runs on it, when its key no longer opens the job, and when the key is another user's
// now. Those of other keys stay.
func TestConnectionEndsWithItsKey(t *testing.T) {
	t.Parallel()
	b := newLab(t)
	ann, bob, eve := b.letIn("ann"), b.letIn("bob"), b.letIn("eve")
	gone, inner := b.mustConnect("42", ann), b.jump("42-a1", ann)
	stays, other := b.mustConnect("42", bob), b.mustConnect("42", eve)
	session, err := gone.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	if err := session.Start("sleep 600"); err != nil {
		t.Fatal(err)
	}
	b.change(func() { b.keys = []Key{{"bob", bob.PublicKey()}, {"ann", eve.PublicKey()}} })
	b.door.Recheck()
	if err := session.Wait(); err == nil {
		t.Error("the program ended well")
	}
	for _, c := range []*ssh.Client{gone, inner, other} {
		_ = c.Wait() // it is closed, however
	}
	output(t, stays, "true")
	b.door.Close() // an entry is made before the connection is closed
	b.mu.Lock()
	defer b.mu.Unlock()
	ended := map[core.UserName]int{}
	for _, e := range b.audit {
		if e.Reason == "bad_key" {
			ended[e.User]++
		}
	}
	if ended["ann"] != 2 || ended["eve"] != 1 || ended["bob"] != 0 {
		t.Errorf("the audit log has ends of connections of %v", ended)
	}
}

// A key that cannot be looked up now is no reason to end a connection.
func TestConnectionOutlivesALookup(t *testing.T) {
	t.Parallel()
	b := newLab(t)
	c := b.mustConnect("42", b.letIn("ann"))
	looked := make(chan struct{}, 1)
	b.change(func() {
		b.keysFail = func() error {
			select {
			case looked <- struct{}{}:
			default:
			}
			return core.Errorf(core.Unavailable, "the database is away")
		}
	})
	b.door.Recheck()
	<-looked
	output(t, c, "true")
}

// Close does not wait for a step that is being made.
func TestCloseWaitsForNoStep(t *testing.T) {
	t.Parallel()
	b := newLab(t)
	ann := b.letIn("ann")
	asked, release := make(chan struct{}, 8), make(chan struct{})
	defer close(release)
	b.http.Handler = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		asked <- struct{}{}
		<-release
	})
	c := b.mustConnect("42", ann)
	go func() {
		s, err := c.NewSession()
		if err == nil {
			_ = s.Close()
		}
	}()
	<-asked
	closed := make(chan struct{})
	go func() {
		b.door.Close()
		close(closed)
	}()
	select {
	case <-closed:
	case <-time.After(stepTime - 5*time.Second):
		t.Fatal("Close waits for the step")
	}
}
