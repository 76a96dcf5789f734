package fit

// WithoutSwitchLimit returns the request without the limit on switches.
func (n *Request) WithoutSwitchLimit() *Request {
	if n.Set == nil || n.Set.Switches == 0 {
		return n
	}
	m, w := *n, *n.Set
	w.Switches, m.Set = 0, &w
	return &m
}
