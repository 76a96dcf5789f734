package rest

import (
	"math"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/slurm/report/record"
	"bireme.dev/bireme/internal/slurm/schema"
)

func listLicenses(c *Call) (*schema.Record, error) {
	list, err := c.api.Client.Licenses(c.Context)
	if err != nil {
		return nil, err
	}
	return record.Licenses(list, c.api.Now()), nil
}

func reconfigure(c *Call) (*schema.Record, error) {
	if _, err := c.api.Client.Reconfigure(c.Context, &client.Reconfigure{}); err != nil {
		return nil, err
	}
	return schema.New("openapi_resp"), nil
}

func diagnose(c *Call) (*schema.Record, error) {
	d, err := c.api.Client.Diag(c.Context)
	if err != nil {
		return nil, err
	}
	return record.Diag(d), nil
}

// small bounds a count to what clients have for it.
func small(n int64) int64 { return min(n, math.MaxInt32) }

func listShares(c *Call) (*schema.Record, error) {
	list, err := c.api.Client.Shares(c.Context)
	if err != nil {
		return nil, err
	}
	info, err := c.info()
	if err != nil {
		return nil, err
	}
	return record.Shares(list, info.Name, words(c.Query, "users"), words(c.Query, "accounts")), nil
}
