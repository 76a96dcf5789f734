package fit

// RoomTotals sums how many tasks of a request a changing set of nodes could take, without looking at the nodes again.
type RoomTotals struct {
	req   *Request
	count int32 // nodes with any room
	total int64 // room on all of them
	Rooms []int32
	// Of the roomiest nodes, as many as the job may have: those with more room than low, and some with that.
	lowest, aboveLowest int32
	aboveTotal          int64 // room on those above
	unbounded           bool  // some had more room than maxRoomCounted: the roomiest are not known
}

// maxRoomCounted is the most room of a node that is counted. A node that stands for a whole machine has more.
const maxRoomCounted = 4096

// NewRoomTotals returns the sums over no nodes. rooms is memory to reuse.
func NewRoomTotals(req *Request, rooms []int32) RoomTotals {
	return RoomTotals{req: req, Rooms: append(rooms[:0], 0)}
}

// Change records that the room of a node changed.
func (c *RoomTotals) Change(was, is int32) {
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
	for int(is) >= len(c.Rooms) {
		c.Rooms = append(c.Rooms, 0)
	}
	most := c.req.NodesMax
	if was > 0 {
		c.Rooms[was]--
		if was > c.lowest {
			c.aboveLowest--
			c.aboveTotal -= int64(was)
		}
	}
	if is > 0 {
		c.Rooms[is]++
		if is > c.lowest {
			c.aboveLowest++
			c.aboveTotal += int64(is)
		}
	}
	for c.aboveLowest > most {
		c.lowest++
		c.aboveLowest -= c.Rooms[c.lowest]
		c.aboveTotal -= int64(c.Rooms[c.lowest]) * int64(c.lowest)
	}
	for c.lowest > 0 && c.aboveLowest+c.Rooms[c.lowest] <= most {
		c.aboveLowest += c.Rooms[c.lowest]
		c.aboveTotal += int64(c.Rooms[c.lowest]) * int64(c.lowest)
		c.lowest--
	}
}

// MayFit reports whether a choice could succeed at all: a cheap check that rejects most times that are too early.
func (c *RoomTotals) MayFit() bool {
	req := c.req
	if c.count < req.NodesMin || c.total < int64(req.Tasks) {
		return false
	}
	if c.unbounded || c.count <= req.NodesMax {
		return true
	}
	return c.aboveTotal+int64(req.NodesMax-c.aboveLowest)*int64(c.lowest) >= int64(req.Tasks)
}
