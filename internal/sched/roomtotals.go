package sched

// roomTotals sums how many tasks of a request a changing set of nodes could take, without looking at the nodes again.
type roomTotals struct {
	req   *request
	count int32 // nodes with any room
	total int64 // room on all of them
	rooms []int32
	// Of the roomiest nodes, as many as the job may have: those with more room than low, and some with that.
	lowest, aboveLowest int32
	aboveTotal          int64 // room on those above
	unbounded           bool  // some had more room than is told apart: nothing is known of the roomiest
}

// maxRoomCounted is up to how much room of a node is told apart: one that stands for a whole machine is judged by a
// choice.
const maxRoomCounted = 4096

func newRoomTotals(n *request, rooms []int32) roomTotals {
	return roomTotals{req: n, rooms: append(rooms[:0], 0)}
}

// change records that the room of a node changed.
func (c *roomTotals) change(was, is int32) {
	c.total += int64(is - was)
	switch {
	case is > 0 && was == 0:
		c.count++
	case is == 0 && was > 0:
		c.count--
	}
	if c.unbounded = c.unbounded || is > maxRoomCounted; c.unbounded {
		return
	}
	for int(is) >= len(c.rooms) {
		c.rooms = append(c.rooms, 0)
	}
	most := c.req.nodesMax
	if was > 0 {
		c.rooms[was]--
		if was > c.lowest {
			c.aboveLowest--
			c.aboveTotal -= int64(was)
		}
	}
	if is > 0 {
		c.rooms[is]++
		if is > c.lowest {
			c.aboveLowest++
			c.aboveTotal += int64(is)
		}
	}
	for c.aboveLowest > most {
		c.lowest++
		c.aboveLowest -= c.rooms[c.lowest]
		c.aboveTotal -= int64(c.rooms[c.lowest]) * int64(c.lowest)
	}
	for c.lowest > 0 && c.aboveLowest+c.rooms[c.lowest] <= most {
		c.aboveLowest += c.rooms[c.lowest]
		c.aboveTotal += int64(c.rooms[c.lowest]) * int64(c.lowest)
		c.lowest--
	}
}

// mayFit reports whether a choice could succeed at all: a cheap check that rejects most times that are too early.
func (c *roomTotals) mayFit() bool {
	n := c.req
	if c.count < n.nodesMin || c.total < int64(n.tasks) {
		return false
	}
	if c.unbounded || c.count <= n.nodesMax {
		return true
	}
	return c.aboveTotal+int64(n.nodesMax-c.aboveLowest)*int64(c.lowest) >= int64(n.tasks)
}
