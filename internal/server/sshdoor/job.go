package sshdoor

import (
	"context"
	"strconv"
	"sync"

	"golang.org/x/crypto/ssh"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/wire"
)

// jobConn is an SSH connection into a job.
type jobConn struct {
	conn ssh.Conn
	gone chan struct{} // closed when it is
}

// dialing is a connection into the job that is made, or was.
type dialing struct {
	done chan struct{}
	job  *jobConn
	err  error
}

// over reports whether another has to be made.
func (w *dialing) over() bool {
	select {
	case <-w.done:
	default:
		return false
	}
	if w.err != nil {
		return true
	}
	select {
	case <-w.job.gone:
		return true
	default:
		return false
	}
}

// dial gives the connection into the job, which all that a client asks for shares. One that is gone, with its node or
// its agent, is made again.
func (k *caller) dial() (*jobConn, error) {
	k.mu.Lock()
	mine := k.way == nil || k.way.over()
	if mine {
		k.way = &dialing{done: make(chan struct{})}
	}
	w := k.way
	k.mu.Unlock()
	if mine {
		w.job, w.err = k.openJob()
		close(w.done)
	}
	select {
	case <-w.done:
		return w.job, w.err
	case <-k.ctx.Done():
		return nil, k.ctx.Err()
	}
}

// closeJob ends the connection into the job, if there is one. The caller's context has ended.
func (k *caller) closeJob() {
	k.mu.Lock()
	w := k.way
	k.mu.Unlock()
	if w == nil {
		return
	}
	<-w.done
	if w.err == nil {
		_ = w.job.conn.Close()
		<-w.job.gone
	}
}

// openJob makes a step in the job and speaks SSH with it.
func (k *caller) openJob() (*jobConn, error) {
	j, err := k.d.Job(k.ctx, k.target.Job)
	if err != nil {
		return nil, err
	}
	ask, err := sshStep(j, k.target.Attempt, k.target.Node)
	if err != nil {
		return nil, err
	}
	// Of a client that leaves meanwhile the step is taken, and let go of: nobody would end it sooner than in a minute.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(k.ctx), stepTime)
	defer cancel()
	defer context.AfterFunc(k.d.ctx, cancel)() // the door closes: nobody waits for it
	made, err := k.api.NewStep(ctx, strconv.FormatInt(int64(j.ID), 10), ask)
	if err != nil {
		return nil, err
	}
	raw, err := k.api.Stream(ctx, made.Key)
	if err != nil {
		return nil, err
	}
	s := newStepStream(wire.NewConn(raw))
	stop := context.AfterFunc(k.ctx, func() { _ = s.Close() })
	conn, channels, requests, err := ssh.NewClientConn(s, "job", &ssh.ClientConfig{
		Config: algorithms, User: "root",
		HostKeyCallback: ssh.InsecureIgnoreHostKey(), // the step's stream is the job's, and nobody else's
	})
	if err != nil {
		stop()
		_ = s.Close()
		return nil, s.why(err)
	}
	job := &jobConn{conn: conn, gone: make(chan struct{})}
	k.work.Go(func() {
		defer close(job.gone)
		defer stop()
		go ssh.DiscardRequests(requests) // ends with the connection
		var all sync.WaitGroup
		for c := range channels {
			all.Go(func() { k.fromJob(c) })
		}
		_ = conn.Wait()
		_ = s.Close()
		all.Wait()
	})
	return job, nil
}

// sshStep is the step that serves SSH on its standard streams, on a node of a running job.
func sshStep(j *core.Job, attempt int32, node int) (*client.NewStep, error) {
	switch {
	case j.State.Final():
		return nil, core.Errorf(core.Conflict, "job %d has ended: it %s", j.ID, j.State.Phrase())
	case j.State != core.Running || j.Alloc == nil:
		return nil, core.Errorf(core.Conflict, "job %d is not running: it %s", j.ID, j.State.Phrase())
	case attempt != 0 && attempt != j.Attempt:
		return nil, core.Errorf(core.Conflict, "job %d was started again since; attach again", j.ID)
	case node >= len(j.Alloc.Nodes):
		return nil, core.Errorf(core.NotFound, "job %d has %d nodes; there is no number %d", j.ID, len(j.Alloc.Nodes), node)
	}
	return &client.NewStep{
		Name: core.StepSSH, Argv: []string{wire.InitInside, "sshd"}, WorkDir: "/", Nodes: 1, Tasks: 1,
		NodeList: string(j.Alloc.Nodes[node].Node), Overlap: true, Overcommit: true, MPI: "none",
	}, nil
}

// fromJob passes on a connection that somebody made to a port that the client has the job listen on.
func (k *caller) fromJob(c ssh.NewChannel) {
	k.mu.Lock()
	to := k.forward
	k.mu.Unlock()
	if to == nil || c.ChannelType() != "forwarded-tcpip" {
		_ = c.Reject(ssh.Prohibited, "nobody waits for this")
		return
	}
	if k.open.Add(1) > maxChannels {
		k.open.Add(-1)
		_ = c.Reject(ssh.ResourceShortage, "too many open channels")
		return
	}
	defer k.open.Add(-1)
	relay(c, to)
}
