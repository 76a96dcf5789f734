package client

import (
	"context"

	"bireme.dev/bireme/internal/core"
)

// Reconfigure is the body of POST /api/v1/reconfigure.
type Reconfigure struct {
	DryRun bool `json:"dry_run,omitempty"` // tell what would change, change nothing
}

// Reconfigured answers it.
type Reconfigured struct {
	Changes  []core.PolicyChange `json:"changes"`           // of partitions, licenses and nodes
	Settings []core.FieldChange  `json:"settings"`          // other settings that changed
	Restart  []core.FieldChange  `json:"restart,omitempty"` // settings that changed and wait for a restart
	Notes    []string            `json:"notes,omitempty"`   // what looks wrong and is allowed
	Applied  bool                `json:"applied"`
}

// Reconfigure has the server read its config file again.
func (c *ClusterClient) Reconfigure(ctx context.Context, r *Reconfigure) (*Reconfigured, error) {
	out := new(Reconfigured)
	if err := c.do(ctx, call{method: "POST", path: api + "/reconfigure", body: r}, out); err != nil {
		return nil, err
	}
	return out, nil
}
