package slurmapi_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"bireme.dev/bireme/internal/core"
)

// TestAccounting makes, looks at and removes records of every kind, in every version.
func TestAccounting(t *testing.T) {
	t.Parallel()
	s, c := start(t)
	for i, v := range versions {
		base, n := "/slurmdb/"+v, itoa(int64(i))
		for _, step := range []struct {
			method, path, body string
			status             int
			want               string // in the answer
		}{
			{"POST", "/qos/", `{"qos":[{"name":"high` + n + `","priority":{"set":true,"number":7},"flags":["DENY_LIMIT"],` +
				`"limits":{"max":{"wall_clock":{"per":{"job":{"set":true,"number":30}}},` +
				`"tres":{"per":{"user":[{"type":"cpu","count":8}]}}}}}]}`, 200, ""},
			{"GET", "/qos/high" + n, "", 200, `"wall_clock":{"per":{"qos":{"set":false,"infinite":false,"number":0},` +
				`"job":{"set":true,"infinite":false,"number":30}}}`},
			{"GET", "/qos/", "", 200, `"name":"normal"`},
			{"GET", "/qos/none", "", 404, "9003"},
			{"POST", "/accounts/", `{"accounts":[{"name":"phys` + n + `","description":"d","organization":"o"}]}`, 200, ""},
			{"GET", "/account/phys" + n, "", 200, `"organization":"o"`},
			{"POST", "/users/", `{"users":[{"name":"u` + n + `","administrator_level":["None"]}]}`, 200, ""},
			{"POST", "/associations/", `{"associations":[{"account":"phys` + n + `","user":"u` + n + `","shares_raw":5,` +
				`"max":{"jobs":{"per":{"count":{"set":true,"number":3}}}}}]}`, 200, ""},
			{"GET", "/association/?account=phys" + n + "&user=u" + n, "", 200, `"shares_raw":5`},
			{"GET", "/associations/?user=u" + n, "", 200, `"count":{"set":true,"infinite":false,"number":3}`},
			{"GET", "/user/u" + n, "", 200, `"account":"phys` + n + `"`},
			{"POST", "/users_association/", `{"association_condition":{"accounts":["phys` + n + `"],"users":["w` + n +
				`"],"association":{"fairshare":2}},"user":{"defaultaccount":"phys` + n + `"}}`, 200, `"added_users":"w` + n},
			{"POST", "/accounts_association/", `{"association_condition":{"accounts":["bio` + n + `"],"association":` +
				`{"parent":"phys` + n + `"}},"account":{"description":"x","organization":"y"}}`, 200, "added_accounts"},
			{"GET", "/associations/?account=bio" + n, "", 200, `"parent_account":"phys` + n + `"`},
			{"POST", "/wckeys/", `{"wckeys":[{"user":"u` + n + `","name":"key` + n + `"}]}`, 200, ""},
			{"GET", "/wckeys/", "", 200, `"name":"key` + n + `"`},
			{"DELETE", "/wckey/key" + n, "", 200, "deleted_wckeys"},
			{"GET", "/clusters/", "", 200, `"name":"bireme"`},
			{"GET", "/cluster/bireme", "", 200, `"name":"bireme"`},
			{"DELETE", "/cluster/bireme", "", 400, "2036"},
			{"GET", "/tres/", "", 200, `"type":"cpu"`},
			{"GET", "/instances/", "", 200, `"instances":[]`},
			{"GET", "/config", "", 200, `"accounts":[`},
			{"GET", "/diag/", "", 200, `"statistics":{`},
			{"DELETE", "/association/?account=phys" + n + "&user=u" + n, "", 200, "removed_associations"},
			{"DELETE", "/associations/", "", 400, "9001"},
			{"DELETE", "/associations/?account=phys" + n + "&partition=gpu", "", 400, `unknown parameter \"partition\"`},
			{"DELETE", "/associations/?account=phys" + n + "&cluster=other", "", 404, "9003"},
			{"GET", "/associations/?account=phys" + n + "&cluster=other", "", 200, `"associations":[]`},
			{"GET", "/account/phys" + n, "", 200, `"organization":"o"`},
			{"GET", "/accounts/?nme=x", "", 200, `Ignoring unknown parameter \"nme\"`},
			{"POST", "/associations/", `{"associations":[{"account":"phys` + n + `","max":{"tres":{"minutes":{"total":` +
				`[{"type":"cpu","count":60}]}}}}]}`, 200, ""},
			{"GET", "/association/?account=phys" + n, "", 200, `"minutes":{"total":[{"type":"cpu"`},
			{"POST", "/associations/", `{"associations":[{"account":"phys` + n + `","partition":"main"}]}`, 400, "2036"},
			{"POST", "/associations/", `{"associations":[{"account":"phys` + n + `","shares_raw":-2}]}`, 400, "shares_raw"},
			{
				"POST", "/accounts/", `{"accounts":[{"name":"phys` + n + `","coordinators":[{"name":"u` + n + `"}]}]}`, 200,
				"field coordinators has no effect",
			},
			{"POST", "/users/", `{"users":[{"name":"x` + n + `","old_name":"u` + n + `"}]}`, 400, "2036"},
			{"DELETE", "/user/u" + n, "", 200, ""},
			{"GET", "/user/u" + n, "", 404, "9003"},
			{"DELETE", "/account/bio" + n, "", 200, "removed_accounts"},
			{"DELETE", "/account/none", "", 404, "9003"},
			{"DELETE", "/qos/high" + n, "", 200, "removed_qos"},
		} {
			status, text := c.raw(step.method, base+step.path, "application/json", step.body)
			if status != step.status || !strings.Contains(text, step.want) {
				t.Errorf("%s %s%s %s: %d %s; want %d with %s", step.method, base, step.path, step.body, status, text,
					step.status, step.want)
			}
		}
	}
	// Who is no administrator changes nothing.
	plain := *c
	plain.token = s.Token(core.User{Name: "bob", UnixName: "daemon"})
	if status, e := plain.do("POST", "/slurmdb/v0.0.43/qos/", `{"qos":[{"name":"mine"}]}`, nil); status != 403 ||
		e.Errors[0].Number != 2002 {
		t.Errorf("bob makes a QOS: %d %+v", status, e)
	}
}

// TestController has the rest of what is asked of the controller.
func TestController(t *testing.T) {
	t.Parallel()
	_, c := start(t, "licenses=matlab:4")
	for _, step := range []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"GET", "/slurm/v0.0.40/licenses/", "", 200, `"LicenseName":"matlab","Total":4`},
		{"GET", "/slurm/v0.0.40/diag/", "", 200, `"schedule_cycle_last":`},
		{"GET", "/slurm/v0.0.43/diag/", "", 200, `"bf_cycle_max":`},
		{"GET", "/slurm/v0.0.42/shares", "", 200, `"shares":{"shares":[`},
		{"GET", "/slurm/v0.0.42/reservations/", "", 200, `"reservations":[]`},
		{
			"POST", "/slurm/v0.0.43/reservation", `{"name":"r1","start_time":{"set":true,"number":4000000000},` +
				`"duration":{"set":true,"number":60},"node_list":["idle"],"users":["root"],"flags":["MAINT","SPEC_NODES"]}`,
			200, `"name":"r1"`,
		},
		{"GET", "/slurm/v0.0.42/reservation/r1", "", 200, `"node_list":"idle"`},
		{"POST", "/slurm/v0.0.43/reservations/", `{"reservations":[{"name":"r1","users":["root","daemon"]}]}`, 200, "daemon"},
		{"POST", "/slurm/v0.0.43/reservation", `{"name":"r2","flags":["ODD"]}`, 400, "9001"},
		{"POST", "/slurm/v0.0.43/reservation", `{"name":"r1","licenses":["matlab:2"],"purge_completed":{"time":` +
			`{"set":true,"number":300}}}`, 200, ""},
		{"GET", "/slurm/v0.0.43/reservation/r1", "", 200, `"licenses":"matlab:2"`},
		{"POST", "/slurm/v0.0.43/reservation", `{"name":"r1","burst_buffer":"x"}`, 400, "2036"},
		{"DELETE", "/slurm/v0.0.43/reservation/r1", "", 200, ""},
		{"GET", "/slurm/v0.0.43/reservation/r1", "", 404, "2053"},
		{"DELETE", "/slurm/v0.0.42/reservation/r1", "", 405, "9200"},
		{
			"POST", "/slurm/v0.0.41/job/allocate", `{"job":{"current_working_directory":"/tmp","minimum_nodes":1}}`, 200,
			`"job_id":1`,
		},
		{"DELETE", "/slurm/v0.0.41/jobs/", `{"partition":"main","usr_name":"bob"}`, 400, "usr_name"},
		{"DELETE", "/slurm/v0.0.41/jobs/?user=bob", `{"partition":"main"}`, 400, "unknown parameter"},
		{"DELETE", "/slurm/v0.0.41/jobs/", `{"partition":"main","nodes":["n[1"]}`, 400, "2018"},
		{"DELETE", "/slurm/v0.0.41/jobs/", `{"partition":"main","flags":["HURY"]}`, 400, "HURY"},
		{"DELETE", "/slurm/v0.0.41/job/1?flags=HURY", "", 400, "HURY"},
		{"POST", "/slurm/v0.0.43/nodes/", `{"name":"idle,n[1","state":["RESUME"]}`, 400, "2018"},
		{"POST", "/slurm/v0.0.40/node/idle", `{"comment":"new","extra":"e","features":["a","b"],"features_act":["a"],` +
			`"weight":{"set":true,"number":7}}`, 200, ""},
		{"GET", "/slurm/v0.0.40/node/idle", "", 200, `"comment":"new"`},
		{"GET", "/slurm/v0.0.40/node/idle", "", 200, `"weight":7`},
		{"GET", "/slurm/v0.0.40/node/idle", "", 200, `"features":["a","b"],"active_features":["a"]`},
		{"POST", "/slurm/v0.0.40/node/idle", `{"weight":{"set":true,"number":-7}}`, 400, "weight"},
		{"POST", "/slurm/v0.0.40/node/idle", `{"gres":"gpu:3"}`, 400, "2036"},
		{"GET", "/slurm/v0.0.43/job/1", "", 200, `"job_state":["`},
		{"DELETE", "/slurm/v0.0.41/jobs/", `{"jobs":["1"]}`, 200, `"string":"No error"`},
		{"DELETE", "/slurm/v0.0.41/jobs/", `{}`, 400, "9003"},
		{"GET", "/slurmdb/v0.0.43/jobs/?state=CANCELLED", "", 200, `"job_id":1`},
		{"GET", "/slurmdb/v0.0.43/jobs/?state=ODD", "", 400, "9001"},
		{"GET", "/slurmdb/v0.0.43/jobs/?cluster=other", "", 200, `"jobs":[]`},
		{"GET", "/slurmdb/v0.0.43/jobs/?groups=4242", "", 200, `"jobs":[]`},
		{"GET", "/slurmdb/v0.0.43/jobs/?groups=0", "", 200, `"job_id":1`},
		{"GET", "/slurmdb/v0.0.43/jobs/?groups=nobodys", "", 400, "9001"},
		{"GET", "/slurmdb/v0.0.43/jobs/?node=n%5B1", "", 400, "2018"},
		{"GET", "/slurmdb/v0.0.40/job/1", "", 200, `"current":["CANCELLED"]`},
		{"GET", "/slurmdb/v0.0.40/job/77", "", 404, "2017"},
		{"GET", "/slurmdb/v0.0.42/ping/", "", 200, `"responding":true`},
		{"GET", "/slurmdb/v0.0.41/ping/", "", 404, "9200"},
	} {
		status, text := c.raw(step.method, step.path, "application/json", step.body)
		if status != step.status || !strings.Contains(text, step.want) {
			t.Errorf("%s %s %s: %d %s; want %d with %s", step.method, step.path, step.body, status, text, step.status,
				step.want)
		}
	}
}

// TestOpenAPI holds every answer against the document that describes it.
func TestOpenAPI(t *testing.T) {
	t.Parallel()
	_, c := start(t, "licenses=matlab:4")
	c.do("POST", "/slurm/v0.0.43/job/submit", minimal, nil)
	var doc struct {
		Paths      map[string]map[string]operation
		Components struct{ Schemas map[string]shape }
	}
	for _, path := range []string{"/openapi", "/openapi.json", "/openapi/v3"} {
		status, text := c.raw("GET", path, "", "")
		if status != http.StatusOK {
			t.Fatalf("%s: %d", path, status)
		}
		if err := json.Unmarshal([]byte(text), &doc); err != nil {
			t.Fatal(err)
		}
	}
	if len(doc.Paths) < 4*30 {
		t.Errorf("there are %d paths", len(doc.Paths))
	}
	for path, item := range doc.Paths {
		op, ok := item["get"]
		if !ok || strings.Contains(path, "reconfigure") {
			continue
		}
		for from, to := range map[string]string{
			"{job_id}": "1", "{node_name}": "idle", "{partition_name}": "main", "{qos}": "normal",
			"{account_name}": "root", "{name}": "root", "{cluster_name}": "bireme", "{id}": "k", "{reservation_name}": "r",
		} {
			path = strings.Replace(path, from, to, 1)
		}
		status, text := c.raw("GET", path, "", "")
		if status != 200 && !strings.HasSuffix(path, "/k") && !strings.HasSuffix(path, "/r") {
			t.Errorf("%s: %d %s", path, status, text)
		}
		var got any
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		check := checker{t: t, path: path, schemas: doc.Components.Schemas}
		check.value(op.Responses["200"].Content["application/json"].Schema, got, "")
	}
}

type operation struct {
	Responses map[string]struct {
		Content map[string]struct{ Schema shape }
	}
}

type shape struct {
	Ref        string `json:"$ref"`
	Type       string
	Enum       []string
	Items      *shape
	Properties map[string]shape
}

type checker struct {
	t       *testing.T
	path    string
	schemas map[string]shape
}

// value checks that a value has the type, the keys and the words of its description.
func (c *checker) value(s shape, v any, at string) {
	if s.Ref != "" {
		s = c.schemas[strings.TrimPrefix(s.Ref, "#/components/schemas/")]
	}
	ok := true
	switch x := v.(type) {
	case string:
		ok = s.Type == "string"
		if ok && len(s.Enum) > 0 && x != "" && !contains(s.Enum, x) {
			c.t.Errorf("%s%s: %q is none of the words", c.path, at, x)
		}
	case bool:
		ok = s.Type == "boolean"
	case float64:
		ok = s.Type == "number" || s.Type == "integer" && x == float64(int64(x))
	case []any:
		if ok = s.Type == "array"; ok {
			for _, item := range x {
				c.value(*s.Items, item, at+"[]")
			}
		}
	case map[string]any:
		ok = s.Type == "object"
		for key, item := range x {
			p, known := s.Properties[key]
			if !known {
				c.t.Errorf("%s%s: %s is not described", c.path, at, key)
				continue
			}
			c.value(p, item, at+"."+key)
		}
		if len(x) > 0 && len(x) != len(s.Properties) {
			c.t.Errorf("%s%s: %d of %d fields", c.path, at, len(x), len(s.Properties))
		}
	default:
		ok = false
	}
	if !ok {
		c.t.Errorf("%s%s: %v is no %s", c.path, at, v, s.Type)
	}
}

func contains(list []string, word string) bool {
	for _, w := range list {
		if w == word {
			return true
		}
	}
	return false
}
