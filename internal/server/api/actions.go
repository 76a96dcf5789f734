package api

import "bireme.dev/bireme/internal/server/api/call"

// audited names the calls of every route that changes something, and of those reads that are private. Reads that are
// not here are told when they are refused.
var audited = map[string]call.Auditing{
	"POST /servers/stepdown": {Action: "server.stepdown", Object: "servers", When: call.Always},
	"POST /reconfigure":      {Action: "settings.reload", Object: "settings", When: call.Always, Body: true},
	"POST /history":          {Action: "history.take", Object: "history", When: call.Always},
	"GET /audit":             {Action: "audit.read", Object: "audit log", When: call.Always},
	"POST /diag/reset":       {Action: "diag.reset", Object: "figures", When: call.Always},
	"POST /ca/rotate":        {Action: "ca.rotate", Object: "ca", When: call.Always, Body: true},
	"GET /seals":             {Action: "seals.read", Object: "seals", When: call.Always},
	"POST /seals/rotate":     {Action: "seals.rotate", Object: "seals", When: call.Always},

	"POST /jobs":                         {Action: "job.submit"},
	"POST /jobs/try":                     {Action: "job.try"},
	"POST /jobs/cancel":                  {Action: "job.cancel"},
	"PATCH /jobs/{id}":                   {Action: "job.update", Object: "job {id}"},
	"GET /jobs/{id}/script":              {Action: "job.script", Object: "job {id}"},
	"GET /jobs/{id}/env":                 {Action: "job.env", Object: "job {id}"},
	"GET /jobs/{id}/logs":                {Action: "job.logs", Object: "job {id}"},
	"GET /jobs/{id}/metrics":             {Action: "job.metrics", Object: "job {id}"},
	"POST /jobs/{id}/steps":              {Action: "step.create", Object: "job {id}"},
	"POST /jobs/{id}/release":            {Action: "job.release", Object: "job {id}"},
	"PATCH /jobs/{id}/steps/{step}":      {Action: "step.update", Object: "step {id}.{step}"},
	"GET /jobs/{id}/steps/{step}/usage":  {Action: "step.usage", Object: "step {id}.{step}"},
	"GET /jobs/{id}/steps/{step}/attach": {Action: "step.attach", Object: "step {id}.{step}"},
	"GET /jobs/{id}/steps/{step}/resume": {Action: "step.resume", Object: "step {id}.{step}"},
	"GET /streams/{key}":                 {Action: "step.stream"},
	"POST /runs/{name}/stop":             {Action: "run.stop", Object: "run {name}"},

	"POST /triggers":       {Action: "trigger.set", Object: "trigger", When: call.Always, Body: true},
	"POST /triggers/clear": {Action: "trigger.clear", Object: "trigger", When: call.Always, Body: true},

	"DELETE /nodes/{name}": {Action: "node.remove", Object: "node {name}", When: call.Always},
	"PATCH /nodes/{name}":  {Action: "node.update", Object: "node {name}", When: call.Always, Body: true},
	"PATCH /partitions/{name}": {
		Action: "partition.update", Object: "partition {name}", When: call.Always,
		Body: true,
	},
	"DELETE /partitions/{name}":      {Action: "partition.delete", Object: "partition {name}", When: call.Always},
	"GET /agent/v1/connect":          {Action: "node.connect"},
	"GET /agent/v1/streams/{key}":    {Action: "node.stream"},
	"GET /agent/v1/services/{token}": {Action: "node.service"},
	"POST /renew":                    {Action: "node.renew", Object: "node"},
	"POST /join":                     {Action: "node.join", Object: "node", When: call.Always}, // it carries a secret

	"POST /tokens":             {Action: "token.create", Object: "token", When: call.Always, Body: true},
	"POST /tokens/jwt":         {Action: "token.jwt", Object: "token", When: call.Always, Body: true},
	"POST /tokens/jwt/revoke":  {Action: "token.revoke_jwts", Object: "token", When: call.Always, Body: true},
	"POST /tokens/{id}/rotate": {Action: "token.rotate", Object: "token {id}", When: call.Always, Body: true},
	"DELETE /tokens/{id}":      {Action: "token.revoke", Object: "token {id}", When: call.Always},

	"POST /users": {Action: "user.create", Object: "user", When: call.Always, Body: true},
	"PATCH /users/{name}": {
		Action: "user.update", Object: "user {name}", When: call.Always,
		Body: true,
	},
	"DELETE /users/{name}": {Action: "user.delete", Object: "user {name}", When: call.Always},
	"POST /projects":       {Action: "project.create", Object: "project", When: call.Always, Body: true},
	// it carries secrets
	"POST /users/{name}/take": {Action: "user.take", Object: "user {name}", When: call.Always},
	"PATCH /projects/{project}": {
		Action: "project.update", Object: "project {project}", When: call.Always,
		Body: true,
	},
	"DELETE /projects/{project}": {Action: "project.delete", Object: "project {project}", When: call.Always},
	"PUT /projects/{project}/members/{user}": {
		Action: "project.member", Object: "project {project} member {user}",
		When: call.Always, Body: true,
	},
	"GET /projects/{project}/secrets/{name}": {
		Action: "secret.read", Object: "secret {project}/{name}", When: call.Always,
	},
	"PUT /projects/{project}/secrets/{name}": {
		Action: "secret.set", Object: "secret {project}/{name}", When: call.Always,
	},
	"DELETE /projects/{project}/secrets/{name}": {
		Action: "secret.delete", Object: "secret {project}/{name}", When: call.Always,
	},
	"PUT /policy":        {Action: "policy.apply", Object: "policy", When: call.Always, Body: true},
	"PUT /qos/{name}":    {Action: "qos.update", Object: "qos {name}", When: call.Always, Body: true},
	"DELETE /qos/{name}": {Action: "qos.delete", Object: "qos {name}", When: call.Always},
	"POST /reservations": {
		Action: "reservation.create", Object: "reservation", When: call.Always,
		Body: true,
	},
	"PATCH /reservations/{name}": {
		Action: "reservation.update", Object: "reservation {name}",
		When: call.Always, Body: true,
	},
	"DELETE /reservations/{name}": {
		Action: "reservation.delete", Object: "reservation {name}",
		When: call.Always,
	},
	// it may carry keys
	"PUT /fleets/{name}":        {Action: "fleet.update", Object: "fleet {name}", When: call.Always},
	"DELETE /fleets/{name}":     {Action: "fleet.delete", Object: "fleet {name}", When: call.Always},
	"POST /fleets/{name}/trust": {Action: "fleet.trust", Object: "fleet {name}", When: call.Always},

	"GET /debug/pprof/{what...}": {Action: "server.profile", Object: "profile {what}", When: call.Always},
}
