package server_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/server/servertest"
)

// sshKey makes a private key.
func sshKey(t *testing.T) string {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

// TestFleetsByTheAPI: a fleet whose host refuses is kept with the cause, also over a restart; its key lies sealed; what
// is wrong with a fleet is told.
func TestFleetsByTheAPI(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t)
	ann, _, _, _ := people(s)
	const port = 1 // nobody listens there, and no other test will
	key := sshKey(t)
	spec := func(f func(*client.FleetSpec)) *client.FleetSpec {
		x := &client.FleetSpec{Keys: map[string]string{"k": key}, Hosts: []client.FleetHostSpec{
			{SSHLogin: client.SSHLogin{Hostname: "127.0.0.1", Port: port, User: "root", Key: "k"}},
		}}
		f(x)
		return x
	}
	var plan core.FleetPlan
	s.Must("PUT", "/api/v1/fleets/lab", spec(func(x *client.FleetSpec) { x.DryRun = true }), &plan)
	if plan.Action != "create" || len(plan.Added) != 1 {
		t.Fatalf("plan %+v", plan)
	}
	s.Must("PUT", "/api/v1/fleets/lab", spec(func(*client.FleetSpec) {}), &plan)
	cause := func() string {
		var f client.Fleet
		s.Must("GET", "/api/v1/fleets/lab", nil, &f)
		if len(f.Instances) != 1 || f.Instances[0].Node != "lab-0" {
			t.Fatalf("fleet %+v", f)
		}
		return f.Instances[0].Cause
	}
	s.Await("the cause", func() bool { return strings.Contains(cause(), "refuses connections") })
	s.Stop()
	files, err := filepath.Glob(filepath.Join(s.Dir, "db", "bireme.db*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no database: %v %v", files, err)
	}
	body := strings.Split(key, "\n")[1]
	for _, name := range files {
		if data, err := os.ReadFile(name); err != nil || strings.Contains(string(data), body) {
			t.Fatalf("%s holds the key in the clear (%v)", name, err)
		}
	}
	s.Start()
	if c := cause(); !strings.Contains(c, "refuses connections") {
		t.Fatalf("after a restart: %q", c)
	}
	for _, c := range []struct {
		what, method, path, token string
		body                      any
		status                    int
		text                      string
	}{
		{"ann makes one", "PUT", "/x", ann, spec(func(*client.FleetSpec) {}), 403, "administrator"},
		{"ann deletes it", "DELETE", "/lab", ann, nil, 403, "administrator"},
		{"another fleet's host", "PUT", "/x", "", spec(func(*client.FleetSpec) {}), 409, "is in fleet lab"},
		{
			"a bad key", "PUT", "/x", "", spec(func(x *client.FleetSpec) { x.Keys["k"] = "nonsense" }), 400,
			"not a private key",
		},
		{
			"no user", "PUT", "/x", "", spec(func(x *client.FleetSpec) { x.Hosts[0].User = "" }), 400,
			"user: must not be empty",
		},
		{
			"no such key", "PUT", "/x", "", spec(func(x *client.FleetSpec) { x.Hosts[0].Key = "z" }), 400,
			"not one of the keys",
		},
		{
			"a placement", "PUT", "/x", "", spec(func(x *client.FleetSpec) { x.Placement = "near" }), 400,
			"neither any nor cluster",
		},
		{"a name", "PUT", "/a%20b", "", spec(func(*client.FleetSpec) {}), 400, "not a valid fleet name"},
		{"an instance", "DELETE", "/lab?instance=x", "", nil, 400, "not the number"},
		{"no such instance", "DELETE", "/lab?instance=9", "", nil, 404, "no instance 9"},
		{"no such fleet", "GET", "/nope", "", nil, 404, "no fleet"},
	} {
		status, err := s.Call(c.method, "/api/v1/fleets"+c.path, c.token, c.body, nil)
		if status != c.status || err == nil || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %d %v, want %d with %q", c.what, status, err, c.status, c.text)
		}
	}
	// In a project it is there for its members.
	s.Must("POST", "/api/v1/projects", &core.Project{Name: "physics"}, nil)
	s.Must("PUT", "/api/v1/fleets/lab", spec(func(x *client.FleetSpec) { x.Project = "physics" }), &plan)
	sees := func() int {
		var list client.FleetList
		if status, err := s.Call("GET", "/api/v1/fleets", ann, nil, &list); status != 200 {
			t.Fatal(status, err)
		}
		if status, _ := s.Call("GET", "/api/v1/fleets/lab", ann, nil, nil); (status == 200) != (len(list.Fleets) == 1) {
			t.Errorf("the list has %d and the fleet answers %d", len(list.Fleets), status)
		}
		return len(list.Fleets)
	}
	if n := sees(); n != 0 {
		t.Errorf("ann sees %d fleets", n)
	}
	s.Must("PUT", "/api/v1/projects/physics/members/ann", map[string]any{"role": core.RoleUser}, nil)
	if n := sees(); n != 1 {
		t.Errorf("a member sees %d fleets", n)
	}
	s.Must("DELETE", "/api/v1/fleets/lab", nil, nil)
	s.Await("the fleet to be gone", func() bool {
		var list client.FleetList
		s.Must("GET", "/api/v1/fleets", nil, &list)
		return len(list.Fleets) == 0
	})
}

// TestFleetIsLetGo: a fleet that is deleted while a host keeps its server waiting is gone, and so is the connection.
func TestFleetIsLetGo(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s.Must("PUT", "/api/v1/fleets/mute", &client.FleetSpec{
		Keys: map[string]string{"k": sshKey(t)},
		Hosts: []client.FleetHostSpec{
			{SSHLogin: client.SSHLogin{
				Hostname: "127.0.0.1", Port: int32(l.Addr().(*net.TCPAddr).Port), User: "root",
				Key: "k",
			}},
		},
	}, nil)
	c, err := l.Accept() // and not a word
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var f client.Fleet
	s.Must("GET", "/api/v1/fleets/mute", nil, &f)
	if x := f.Instances[0]; x.Phase != "connecting" || x.Cause != "" {
		t.Errorf("while it waits: %+v", x)
	}
	s.Must("DELETE", "/api/v1/fleets/mute", nil, nil)
	if _, err := io.Copy(io.Discard, c); err != nil { // until its end
		t.Errorf("the connection: %v", err)
	}
	s.Await("the fleet to be gone", func() bool {
		var list client.FleetList
		s.Must("GET", "/api/v1/fleets", nil, &list)
		return len(list.Fleets) == 0
	})
}
