package core

// WishChange changes what a pending job asks for beside nodes, and when. Nil fields stay; empty ones take the wish
// back.
type WishChange struct {
	Reservation *string   `json:"reservation,omitempty"`
	Licenses    *Licenses `json:"licenses,omitempty"`
	Deadline    *Time     `json:"deadline,omitempty"`
	TimeMin     *Seconds  `json:"time_min,omitempty"`
	Begin       *Time     `json:"begin,omitempty"` // not before; what has passed is now
}

// Any reports whether anything changes.
func (c *WishChange) Any() bool {
	return c.Reservation != nil || c.Licenses != nil || c.Deadline != nil || c.TimeMin != nil || c.Begin != nil
}
