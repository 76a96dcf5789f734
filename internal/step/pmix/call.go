package pmix

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// Calls of tasks.
const (
	cmdJobInfo    = 0
	cmdAbort      = 1
	cmdCommit     = 2
	cmdFence      = 3
	cmdGet        = 4
	cmdFinalize   = 5
	cmdNotify     = 12
	cmdRegister   = 13
	cmdDeregister = 14
)

// Ranks that stand for something else.
const (
	rankUndef    = math.MaxUint32
	rankWildcard = math.MaxUint32 - 1
)

// call does what a task asks. A fault ends the connection.
func (c *conn) call(tag uint32, body []byte) error {
	r := &reader{dialect: c.dialect, b: body}
	r.items(1)
	cmd := r.byte()
	if r.err != nil {
		return r.err
	}
	c.mu.Lock()
	c.open++
	full := c.open > maxCalls
	c.mu.Unlock()
	if full {
		return errors.New("too many calls at once")
	}
	switch cmd {
	case cmdJobInfo:
		c.reply(tag, c.n.sharedInfo(c.dialect))
	case cmdAbort:
		return c.abort(tag, r)
	case cmdCommit:
		return c.commit(tag, r)
	case cmdFence:
		return c.fence(tag, r)
	case cmdGet:
		return c.get(tag, r)
	case cmdFinalize:
		c.n.mu.Lock()
		c.n.state(c.rank).finalized = true
		c.n.mu.Unlock()
		c.status(tag, statusOK)
	case cmdRegister, cmdNotify: // there are no events: a task that dies ends the step, or srun waits for the others
		c.status(tag, statusOK)
	case cmdDeregister: // nobody waits for an answer
		c.mu.Lock()
		c.open--
		c.mu.Unlock()
	default:
		c.status(tag, statusNotSupported)
	}
	return nil
}

// sharedInfo is jobInfo, made once.
func (n *Node) sharedInfo(d dialect) []byte {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.info[d] == nil {
		n.info[d] = n.jobInfo(d)
	}
	return n.info[d]
}

// abort ends the step. Who asked for it gets an answer, though it may not live to hear it.
func (c *conn) abort(tag uint32, r *reader) error {
	r.items(1)
	code := r.int32()
	r.items(1)
	message := r.string()
	if r.err != nil {
		return r.err
	}
	c.n.cfg.Abort(c.rank, int(code), message[:min(len(message), 512)])
	c.status(tag, statusOK)
	return nil
}

// commit keeps what a task has put so far.
func (c *conn) commit(tag uint32, r *reader) error {
	var near, far []byte
	for len(r.b) > 0 {
		r.items(1)
		scope := r.byte()
		r.items(1)
		r.byte() // how the buffer in it is packed: as it is itself
		b := r.blob()
		switch scope {
		case 1:
			near = b
		case 2:
			far = b
		default:
			r.fail(fmt.Errorf("scope %d", scope))
		}
		if r.err != nil {
			return r.err
		}
	}
	n := c.n
	n.mu.Lock()
	err := n.keep(c.rank, c.dialect, near, far)
	n.mu.Unlock()
	if err != nil {
		return err
	}
	c.status(tag, statusOK)
	n.settle(c.rank)
	return nil
}

// members reads the tasks that a call is about: nil means all of the step.
func (c *conn) members(r *reader) ([]int32, error) {
	r.items(1)
	count := r.tagged()
	if count > uint64(len(r.b)) {
		return nil, errShort
	}
	r.items(int(count))
	var list []int32
	all := false
	for ; count > 0 && r.err == nil; count-- {
		nspace, rank := r.string(), r.uint32()
		_, known := c.n.where[int32(rank)]
		if r.err == nil && (nspace != c.n.cfg.Namespace || !known && rank != rankWildcard) {
			return nil, errOtherJob
		}
		all = all || rank == rankWildcard
		list = append(list, int32(rank))
	}
	if r.err != nil {
		return nil, r.err
	}
	slices.Sort(list)
	list = slices.Compact(list)
	if all || len(list) == c.n.cfg.Size {
		return nil, nil
	}
	return list, nil
}

// errOtherJob is a call about tasks that are not of this step.
var errOtherJob = errors.New("not a task of this step")
