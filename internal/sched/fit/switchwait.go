package fit

// WithoutSwitchLimit returns the request without the limit on switches.
func (req *Request) WithoutSwitchLimit() *Request {
	if req.Set == nil || req.Set.Switches == 0 {
		return req
	}
	m, w := *req, *req.Set
	w.Switches, m.Set = 0, &w
	return &m
}
