package dstackapi_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/dstack/wire"
	"bireme.dev/bireme/internal/server/dstackapi/dstackapitest"
	"bireme.dev/bireme/internal/server/servertest"
)

// The answers are those that the official server of 0.22.5 gave.
func TestAnswersToWhatCannotBeServed(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t)
	admin := dstackapitest.New(t, s, "ada", core.RoleAdmin)
	nobody := admin.As("")
	for _, x := range []struct {
		what   string
		by     *dstackapitest.Caller
		method string
		path   string
		body   any
		status int
		want   string
	}{
		{"health", nobody, "GET", "/healthcheck", nil, 200, `{"status":"running"}`},
		{"info", nobody, "POST", "/api/server/get_info", "{}", 200, `{"server_version":"0.22.5"}`},
		{"providers", nobody, "POST", "/api/auth/list_providers", nil, 200, `[]`},
		{"no token", nobody, "POST", "/api/users/get_my_user", nil, 401, `{"detail":"Not authenticated"}`},
		{
			"wrong token", admin.As("bad"), "POST", "/api/users/get_my_user", "{}", 403,
			`{"detail":{"msg":"Invalid token","code":null}}`,
		},
		{
			"unknown project", admin, "POST", "/api/projects/nowhere/get", nil, 404,
			`{"detail":{"msg":"Not found","code":null}}`,
		},
		{"unknown route", admin, "POST", "/api/nothing/here", "{}", 405, `{"detail":"Method Not Allowed"}`},
		{"unknown page", admin, "GET", "/api/nothing/here", nil, 404, `{"detail":"Not Found"}`},
		{"wrong method", admin, "GET", "/api/users/list", nil, 404, `{"detail":"Not Found"}`},
		{
			"limit", admin, "POST", "/api/users/list", `{"limit": 100000}`, 422,
			`{"detail":[{"type":"less_than_equal","loc":["body","limit"],` +
				`"msg":"Input should be less than or equal to 2000","input":100000,"ctx":{"le":2000}}]}`,
		},
		{
			"role", admin, "POST", "/api/users/create", `{"username":"eve","global_role":"emperor","email":null}`, 422,
			`{"detail":[{"type":"enum","loc":["body","global_role"],"msg":"Input should be 'admin' or 'user'",` +
				`"input":"emperor","ctx":{"expected":"'admin' or 'user'"}}]}`,
		},
		{
			"no body", admin, "POST", "/api/users/get_user", nil, 422,
			`{"detail":[{"type":"missing","loc":["body"],"msg":"Field required","input":null}]}`,
		},
		{
			"unknown key", admin, "POST", "/api/users/get_user", `{"username":"ada","surprise":1}`, 422,
			`{"detail":[{"type":"extra_forbidden","loc":["body","surprise"],"msg":"Extra inputs are not permitted","input":1}]}`,
		},
		{
			"empty unknown keys", admin, "POST", "/api/users/list", `{"limit":0,"a":null,"b":false,"c":[],"d":{},"e":""}`, 200,
			`[]`,
		},
	} {
		a := x.by.Do(x.method, x.path, x.body)
		if a.Status != x.status || a.Body != x.want {
			t.Errorf("%s: %d %s\nwant %d %s", x.what, a.Status, a.Body, x.status, x.want)
		}
		if got := a.Header.Get("Content-Type"); got != "application/json" {
			t.Errorf("%s: content type %q", x.what, got)
		}
	}
	a := admin.Send("/api/users/get_user", "{nope")
	if a.Status != 422 || !strings.Contains(a.Body, `"type":"json_invalid","loc":["body",1]`) {
		t.Errorf("bad JSON: %d %s", a.Status, a.Body)
	}
	// the native API keeps its own words
	if a := admin.Send("/api/v1/nothing", "{}"); a.Status != 404 || !strings.Contains(a.Body, `"code":"not_found"`) {
		t.Errorf("native: %d %s", a.Status, a.Body)
	}
}

func TestClientsOfOtherVersions(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t)
	admin := dstackapitest.New(t, s, "ada", core.RoleAdmin)
	for _, x := range []struct {
		version string
		body    string
		status  int
		want    string
	}{
		{"0.1.0", "{}", 200, ""},
		{"0.20.20", "{}", 200, ""},
		{"0.22.99", "{}", 200, ""},
		{"0.23.0rc1", "{}", 200, ""},
		{"latest", "{}", 200, ""},
		{"", "{}", 200, ""},
		{
			"9.9.9", "{}", 400,
			`{"detail":[{"msg":"The client/CLI version (9.9.9) is incompatible with the server version ` +
				`(0.22.5).","code":"error"}]}`,
		},
		{"abc", "{}", 400, `{"detail":[{"msg":"Invalid version: abc","code":null}]}`},
		{"0.23.1", `{"later":{"a":[1]}}`, 400, `0.22.5 and does not know \"later\", which the client (version 0.23.1) sends`},
		{"", `{"later":1}`, 400, `0.22.5`},
		{"0.22.5", `{"later":1}`, 422, `extra_forbidden`},
	} {
		admin.Version = x.version
		a := admin.Send("/api/users/list", x.body)
		if a.Status != x.status || !strings.Contains(a.Body, x.want) {
			t.Errorf("%q: %d %s\nwant %d with %s", x.version, a.Status, a.Body, x.status, x.want)
		}
	}
}

func TestHostileBodies(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t)
	user := dstackapitest.New(t, s, "eve", core.RoleUser)
	deep := strings.Repeat(`[`, 200_000) + strings.Repeat(`]`, 200_000)
	wide := `{"a":[` + strings.TrimSuffix(strings.Repeat("{},", 100_000), ",") + `]}`
	for what, body := range map[string]string{
		"deep": `{"a":` + deep + `}`, "wide": wide, "list": "[1]", "text": `"x"`, "null": "null",
		"NUL": `{"username":"a\u0000b"}`,
	} {
		if a := user.Send("/api/users/get_user", body); a.Status < 400 || a.Status >= 500 || len(a.Body) > 20_000 {
			t.Errorf("%s: %d with %d bytes", what, a.Status, len(a.Body))
		}
	}
	if a := user.Send("/api/users/list", "{}"); a.Status != http.StatusOK {
		t.Errorf("afterwards: %d %s", a.Status, a.Body)
	}
}

func TestUUIDsAreOfVersion4(t *testing.T) {
	t.Parallel()
	a, b := wire.UUID(wire.KindUser, "ada"), wire.UUID(wire.KindProject, "ada")
	for _, id := range []string{a, b} {
		if !wire.IsUUID(id) || id[14] != '4' || !strings.ContainsRune("89ab", rune(id[19])) {
			t.Errorf("%s is not a UUID of version 4", id)
		}
	}
	if a == b || a != wire.UUID(wire.KindUser, "ada") {
		t.Errorf("%s and %s", a, b)
	}
}

// keysOf lists the keys of an object.
func keysOf(t *testing.T, text string) map[string]json.RawMessage {
	t.Helper()
	var m map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return m
}
