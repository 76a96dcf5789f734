package sdiag

import "bireme.dev/bireme/internal/client"

// rpc are calls under the name of Slurm's message for the same thing.
type rpc struct {
	name         string
	id           int
	count, total int64
}

// messages are Slurm's names and numbers for calls that mean the same. Other calls keep the name of their route.
var messages = map[string]rpc{
	"GET /cluster":             {name: "REQUEST_PARTITION_INFO", id: 2009},
	"GET /jobs":                {name: "REQUEST_JOB_INFO", id: 2003},
	"GET /jobs/{id}":           {name: "REQUEST_JOB_INFO_SINGLE", id: 2021},
	"GET /jobs/{id}/steps":     {name: "REQUEST_JOB_STEP_INFO", id: 2005},
	"GET /jobs/{id}/script":    {name: "REQUEST_BATCH_SCRIPT", id: 2051},
	"POST /jobs":               {name: "REQUEST_SUBMIT_BATCH_JOB", id: 4003},
	"POST /jobs/try":           {name: "REQUEST_JOB_WILL_RUN", id: 4012},
	"POST /jobs/cancel":        {name: "REQUEST_KILL_JOB", id: 5032},
	"PATCH /jobs/{id}":         {name: "REQUEST_UPDATE_JOB", id: 3001},
	"POST /jobs/{id}/steps":    {name: "REQUEST_JOB_STEP_CREATE", id: 5001},
	"POST /jobs/{id}/release":  {name: "REQUEST_COMPLETE_JOB_ALLOCATION", id: 5017},
	"GET /nodes":               {name: "REQUEST_NODE_INFO", id: 2007},
	"GET /nodes/{name}":        {name: "REQUEST_NODE_INFO_SINGLE", id: 2040},
	"PATCH /nodes/{name}":      {name: "REQUEST_UPDATE_NODE", id: 3002},
	"PATCH /partitions/{name}": {name: "REQUEST_UPDATE_PARTITION", id: 3005},
	"GET /reservations":        {name: "REQUEST_RESERVATION_INFO", id: 2024},
	"GET /licenses":            {name: "REQUEST_LICENSE_INFO", id: 1021},
	"GET /shares":              {name: "REQUEST_SHARE_INFO", id: 2022},
	"GET /priorities":          {name: "REQUEST_PRIORITY_FACTORS", id: 2026},
	"GET /diag":                {name: "REQUEST_STATS_INFO", id: 2035},
	"POST /diag/reset":         {name: "REQUEST_STATS_RESET", id: 2037},
	"POST /reconfigure":        {name: "REQUEST_RECONFIGURE", id: 1003},
	"GET /ping":                {name: "REQUEST_PING", id: 1008},
	"GET /agent/v1/connect":    {name: "MESSAGE_NODE_REGISTRATION_STATUS", id: 1002},
}

// rpcs names calls as Slurm names them.
func rpcs(calls []client.CallCount) []rpc {
	list := make([]rpc, 0, len(calls))
	for _, c := range calls {
		r, ok := messages[c.Name]
		if !ok {
			r.name = c.Name
		}
		r.count, r.total = c.Count, c.Total
		list = append(list, r)
	}
	return list
}
