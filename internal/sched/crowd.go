package sched

// crowd tells how much room a changing set of nodes has for a need, without looking at them again.
type crowd struct {
	n     *need
	count int32 // nodes with any room
	total int64 // room on all of them
	rooms []int32
	// Of the roomiest nodes, as many as the job may have: those with more room than low, and some with that.
	low, above int32
	sum        int64 // room on those above
	vast       bool  // some had more room than is told apart: nothing is known of the roomiest
}

// roomsMost is up to how much room of a node is told apart: one that stands for a whole machine is judged by a choice.
const roomsMost = 4096

func newCrowd(n *need, rooms []int32) crowd { return crowd{n: n, rooms: append(rooms[:0], 0)} }

// change tells that the room of a node is another one now.
func (c *crowd) change(was, is int32) {
	c.total += int64(is - was)
	switch {
	case is > 0 && was == 0:
		c.count++
	case is == 0 && was > 0:
		c.count--
	}
	if c.vast = c.vast || is > roomsMost; c.vast {
		return
	}
	for int(is) >= len(c.rooms) {
		c.rooms = append(c.rooms, 0)
	}
	most := c.n.nodesMax
	if was > 0 {
		c.rooms[was]--
		if was > c.low {
			c.above--
			c.sum -= int64(was)
		}
	}
	if is > 0 {
		c.rooms[is]++
		if is > c.low {
			c.above++
			c.sum += int64(is)
		}
	}
	for c.above > most {
		c.low++
		c.above -= c.rooms[c.low]
		c.sum -= int64(c.rooms[c.low]) * int64(c.low)
	}
	for c.low > 0 && c.above+c.rooms[c.low] <= most {
		c.above += c.rooms[c.low]
		c.sum += int64(c.rooms[c.low]) * int64(c.low)
		c.low--
	}
}

// enough tells whether a choice could succeed at all: it is cheap and right about most moments that are too early.
func (c *crowd) enough() bool {
	n := c.n
	if c.count < n.nodesMin || c.total < int64(n.tasks) {
		return false
	}
	if c.vast || c.count <= n.nodesMax {
		return true
	}
	return c.sum+int64(n.nodesMax-c.above)*int64(c.low) >= int64(n.tasks)
}
