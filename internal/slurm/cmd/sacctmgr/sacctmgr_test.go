package sacctmgr

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/slurm/slurmtest"
)

// Options may follow what is asked for, as exporters write them.
func TestOptionsAnywhere(t *testing.T) {
	t.Parallel()
	c := slurmtest.Lab()
	c.Handle = func(w http.ResponseWriter, r *http.Request) bool {
		var body any
		switch r.URL.Path {
		case "/api/v1/policy":
			body = core.Policy{QOS: []core.QOS{{Name: "normal"}, {Name: "high", Priority: 10}}}
		case "/api/v1/users":
			body = client.UserList{}
		default:
			return false
		}
		json.NewEncoder(w).Encode(body)
		return true
	}
	c.Start(t)
	for _, args := range []string{
		"-nP show qos format=name,priority",
		"show qos format=name,priority --noheader --parsable2", "show -n qos -P format=name,priority",
	} {
		got := c.Run(t, "sacctmgr", Run, strings.Fields(args))
		if got.Out != "normal|0\nhigh|10\n" || got.Code != 0 {
			t.Errorf("sacctmgr %s: %+v", args, got)
		}
	}
}
