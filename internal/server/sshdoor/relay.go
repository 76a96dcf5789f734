package sshdoor

import (
	"errors"
	"io"
	"sync"

	"golang.org/x/crypto/ssh"
)

// relay opens the channel that a client wants on another connection and joins the two until both are closed.
func relay(c ssh.NewChannel, to ssh.Conn) {
	far, farRequests, err := to.OpenChannel(c.ChannelType(), c.ExtraData())
	if err != nil {
		reason, text := ssh.ConnectionFailed, err.Error()
		var refused *ssh.OpenChannelError
		if errors.As(err, &refused) {
			reason, text = refused.Reason, refused.Message
		}
		_ = c.Reject(reason, text)
		return
	}
	near, nearRequests, err := c.Accept()
	if err != nil {
		_ = far.Close()
		go ssh.DiscardRequests(farRequests) // ends with the channel
		return
	}
	join(near, nearRequests, far, farRequests)
}

// join passes bytes, ends of streams and requests both ways. The near end is the client's.
func join(near ssh.Channel, nearRequests <-chan *ssh.Request, far ssh.Channel, farRequests <-chan *ssh.Request) {
	var all, output sync.WaitGroup
	var asking sync.Mutex // held while a request of the client is answered
	all.Go(func() {
		_, _ = io.Copy(far, near) // an end is an end, however it came
		_ = far.CloseWrite()
	})
	output.Go(func() { _, _ = io.Copy(near, far) })
	output.Go(func() { _, _ = io.Copy(near.Stderr(), far.Stderr()) })
	all.Go(func() {
		pass(nearRequests, far, &asking)
		_ = far.Close() // the client closed the channel
	})
	all.Go(func() {
		// The job's side closes after its last request; all of its output, and the answer to what the client asked, is
		// passed on before the client sees the end.
		pass(farRequests, near, new(sync.Mutex))
		output.Wait()
		asking.Lock()
		_ = near.Close()
		asking.Unlock()
	})
	all.Go(func() {
		output.Wait()
		_ = near.CloseWrite()
	})
	all.Wait()
}

// pass passes requests on until the channel that they come from is closed. asking is held until each is answered.
func pass(requests <-chan *ssh.Request, to ssh.Channel, asking *sync.Mutex) {
	for r := range requests {
		asking.Lock()
		ok, err := to.SendRequest(r.Type, r.WantReply, r.Payload)
		if r.WantReply {
			_ = r.Reply(ok && err == nil, nil)
		}
		asking.Unlock()
	}
}
