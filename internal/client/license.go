package client

import (
	"context"

	"bireme.dev/bireme/internal/core"
)

// License is a license and what has become of it.
type License struct {
	core.License
	Used     int64 `json:"used"`     // by jobs
	Reserved int64 `json:"reserved"` // by active advance reservations
}

// Free is what jobs leave.
func (l *License) Free() int64 { return max(0, l.Total-l.Used) }

// LicenseList answers GET /api/v1/licenses.
type LicenseList struct {
	Licenses []License `json:"licenses"` // by name
}

// Licenses lists licenses.
func (c *NodeClient) Licenses(ctx context.Context) (*LicenseList, error) {
	return get[LicenseList](ctx, c, api+"/licenses", nil)
}
