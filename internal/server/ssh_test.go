package server_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"net"
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/server/servertest"
	"bireme.dev/bireme/internal/wire"
)

// sshUser makes a user with a key of their own.
func sshUser(t *testing.T, s *servertest.Server, u core.User) (token, keyID string, key ssh.Signer) {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if key, err = ssh.NewSignerFromKey(private); err != nil {
		t.Fatal(err)
	}
	token = s.Token(u)
	var made struct {
		ID string `json:"id"`
	}
	body := map[string]string{"key": string(ssh.MarshalAuthorizedKey(key.PublicKey()))}
	if code, err := s.Call("POST", "/api/users/public_keys/add", token, body, &made); err != nil {
		t.Fatalf("%d %v", code, err)
	}
	return token, made.ID, key
}

// The keys of a job's owner and of administrators open it. Those of other users, of a user who was disabled and keys
// that were taken back do not. Every server of the cluster has the same host key.
func TestWhoseKeysOpenAJob(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t, "ssh.listen=127.0.0.1:0")
	token, keyID, ann := sshUser(t, s, core.User{Name: "ann", UnixName: "daemon"})
	_, _, bob := sshUser(t, s, core.User{Name: "bob"})
	_, _, admin := sshUser(t, s, core.User{Name: "zoe", Role: core.RoleAdmin})
	var made client.Submitted
	if code, err := s.Call("POST", "/api/v1/jobs", token, client.Submit{
		Spec:   core.Spec{Kind: core.Batch, Name: "work", Hold: true, Shape: core.Shape{NodesMin: 1, NodesMax: 1, Tasks: 1}},
		Script: "#!/bin/sh\nsleep 100\n",
	}, &made); err != nil {
		t.Fatalf("%d %v", code, err)
	}
	var hosts []string
	opens := func(key ssh.Signer) bool {
		c, err := ssh.Dial("tcp", s.Info.SSH, &ssh.ClientConfig{
			User: idText(made.ID), Auth: []ssh.AuthMethod{ssh.PublicKeys(key)},
			HostKeyCallback: func(_ string, _ net.Addr, k ssh.PublicKey) error {
				hosts = append(hosts, ssh.FingerprintSHA256(k))
				return nil
			},
		})
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	}
	if !opens(ann) || !opens(admin) || opens(bob) {
		t.Error("the keys of the owner and of administrators open a job, and no others")
	}
	s.Must("PATCH", "/api/v1/users/zoe", map[string]any{"disabled": true}, nil)
	if opens(admin) {
		t.Error("the key of a user who was disabled opens a job")
	}
	s.Stop()
	s.Start()
	if !opens(ann) {
		t.Error("a key does not open after a restart")
	}
	if len(slices.Compact(hosts)) != 1 {
		t.Errorf("host keys %v", hosts)
	}
	if code, err := s.Call("POST", "/api/users/public_keys/delete", token, map[string]any{"ids": []string{keyID}},
		nil); err != nil {
		t.Fatalf("%d %v", code, err)
	}
	if opens(ann) {
		t.Error("a key that was taken back opens a job")
	}
}

// The key that a run was submitted with opens the jobs of that run, and none of an earlier one that had its name.
func TestKeyOfARunOpensItsOwnJobOnly(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t, "ssh.listen=127.0.0.1:0")
	s.Join("n1", core.Compute, false).Connect()
	s.Must("PATCH", "/api/v1/nodes/n1", client.UpdateNode{State: "drain", Reason: "test"}, nil)
	tokens := map[core.UserName]string{}
	for _, name := range []core.UserName{"ann", "bob"} {
		tokens[name] = s.Token(core.User{Name: name})
	}
	s.Must("POST", "/api/projects/create", map[string]any{"project_name": "lab"}, nil)
	s.Must("POST", "/api/projects/lab/add_members", map[string]any{"members": []map[string]string{
		{"username": "ann", "project_role": "user"}, {"username": "bob", "project_role": "user"},
	}}, nil)
	jobOf := func() (last core.JobID) {
		var list client.JobList
		s.Must("GET", "/api/v1/jobs", nil, &list)
		for _, j := range list.Jobs {
			last = max(last, j.ID)
		}
		return last
	}
	apply := func(user core.UserName) (core.JobID, ssh.Signer) {
		t.Helper()
		_, private, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		key, err := ssh.NewSignerFromKey(private)
		if err != nil {
			t.Fatal(err)
		}
		spec := map[string]any{
			"run_name": "train", "ssh_key_pub": string(ssh.MarshalAuthorizedKey(key.PublicKey())),
			"configuration": map[string]any{"type": "task", "name": "train", "commands": []string{"sleep 100"}},
		}
		body := map[string]any{"plan": map[string]any{"run_spec": spec, "current_resource": nil}, "force": false}
		if code, err := s.Call("POST", "/api/project/lab/runs/apply", tokens[user], body, nil); err != nil {
			t.Fatalf("%d %v", code, err)
		}
		return jobOf(), key
	}
	opens := func(id core.JobID, key ssh.Signer) bool {
		c, err := ssh.Dial("tcp", s.Info.SSH, &ssh.ClientConfig{
			User: idText(id), Auth: []ssh.AuthMethod{ssh.PublicKeys(key)}, HostKeyCallback: ssh.InsecureIgnoreHostKey(),
		})
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	}
	anns, ann := apply("ann")
	if !opens(anns, ann) {
		t.Error("the key of a run does not open its job")
	}
	// a token for one project has a key of its own, for that project's jobs
	s.Must("POST", "/api/projects/create", map[string]any{"project_name": "den"}, nil)
	s.Must("POST", "/api/projects/den/add_members", map[string]any{"members": []map[string]string{
		{"username": "ann", "project_role": "user"},
	}}, nil)
	for _, p := range []core.ProjectName{"lab", "den"} {
		var made client.NewTokenMade
		s.Must("POST", "/api/v1/tokens",
			client.NewToken{Kind: "user", User: "ann", Project: p, Scopes: []core.Scope{core.ScopeSubmit}}, &made)
		var me struct {
			Key string `json:"ssh_private_key"`
		}
		if code, err := s.Call("POST", "/api/users/get_my_user", made.Secret, nil, &me); err != nil {
			t.Fatalf("%d %v", code, err)
		}
		key, err := ssh.ParsePrivateKey([]byte(me.Key))
		if err != nil {
			t.Fatal(err)
		}
		if opens(anns, key) != (p == "lab") {
			t.Errorf("the key of a token for project %s: opens a job of project lab: %t", p, p != "lab")
		}
	}
	s.Must("POST", "/api/v1/jobs/cancel", client.Cancel{IDs: []string{idText(anns)}}, nil)
	s.AwaitState(anns, core.Cancelled)
	bobs, bob := apply("bob")
	if !opens(bobs, bob) || opens(anns, bob) || anns == bobs {
		t.Error("the key of a run opens its own job, and none of an earlier run of its name")
	}
}

// What a client asks for is a step of the job, made by the user whose key it was, with the environment of the job's own
// program.
func TestSSHIsAStepOfTheJob(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t, "ssh.listen=127.0.0.1:0")
	a := s.Join("n1", core.Compute, false)
	a.Connect()
	_, _, admin := sshUser(t, s, core.User{Name: "zoe", Role: core.RoleAdmin})
	id := s.Submit(func(in *client.Submit) { in.Env = []string{"MINE=yes"} })
	s.AwaitState(id, core.Running)
	c, err := ssh.Dial("tcp", s.Info.SSH, &ssh.ClientConfig{
		User: idText(id), Auth: []ssh.AuthMethod{ssh.PublicKeys(admin)}, HostKeyCallback: ssh.InsecureIgnoreHostKey(),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	asked := make(chan error, 1)
	go func() { // the agent here does not serve SSH: the answer comes when the connection ends
		_, fault := c.NewSession()
		asked <- fault
	}()
	k := a.AwaitLaunch(id, 1, "0")
	var l *wire.Launch
	for l == nil || l.Key.Step != k.Step {
		if l, err = wire.DecodeLaunch(a.AwaitFrame(wire.TypeLaunch)); err != nil {
			t.Fatal(err)
		}
	}
	env := string(l.Env)
	if l.Program.Argv[0] != wire.InitInside || !strings.Contains(env, "MINE=yes\x00") ||
		!strings.Contains(env, "SLURM_JOB_ID="+idText(id)+"\x00") {
		t.Errorf("%v with %q", l.Program.Argv, env)
	}
	var open wire.OpenStream
	if err := a.AwaitFrame(wire.TypeOpenStream).Decode(&open); err != nil {
		t.Fatal(err)
	}
	raw, _, err := a.Dial(wire.PathStream+open.Token, "bireme-stream")
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	if f, err := wire.NewConn(raw).Next(); err != nil || f.Type != wire.TypeInput ||
		!strings.HasPrefix(string(f.Payload), "SSH-2.0-") {
		t.Errorf("the step gets %q, %v", f.Payload, err)
	}
	var list client.StepList
	s.Must("GET", "/api/v1/jobs/"+idText(id)+"/steps", nil, &list)
	if len(list.Steps) == 0 || list.Steps[len(list.Steps)-1].Name != core.StepSSH {
		t.Errorf("steps %+v", list.Steps)
	}
	_ = c.Close()
	<-asked
	a.AwaitKill(k) // who is gone has no step
}

// A connection ends when the key it was opened with is deleted, its user is disabled or leaves the project of the run,
// or the token is revoked whose key it was.
func TestSSHEndsWithItsRight(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t, "ssh.listen=127.0.0.1:0")
	s.Join("n1", core.Compute, false).Connect()
	s.Must("PATCH", "/api/v1/nodes/n1", client.UpdateNode{State: "drain", Reason: "test"}, nil)
	token, keyID, ann := sshUser(t, s, core.User{Name: "ann", UnixName: "daemon"})
	_, _, zoe := sshUser(t, s, core.User{Name: "zoe", Role: core.RoleAdmin})
	s.Must("POST", "/api/projects/create", map[string]any{"project_name": "lab"}, nil)
	member := map[string]any{"members": []map[string]string{{"username": "ann", "project_role": "user"}}}
	s.Must("POST", "/api/projects/lab/add_members", member, nil)
	spec := map[string]any{
		"run_name": "train", "configuration": map[string]any{
			"type": "task", "name": "train", "commands": []string{"sleep 100"},
			"resources": map[string]any{"cpu": 1, "memory": 1},
		},
	}
	body := map[string]any{"plan": map[string]any{"run_spec": spec, "current_resource": nil}, "force": false}
	if code, err := s.Call("POST", "/api/project/lab/runs/apply", token, body, nil); err != nil {
		t.Fatalf("%d %v", code, err)
	}
	var list client.JobList
	s.Must("GET", "/api/v1/jobs", nil, &list)
	var limited client.NewTokenMade
	s.Must("POST", "/api/v1/tokens", client.NewToken{
		Kind: "user", User: "ann", Project: "lab", Scopes: []core.Scope{core.ScopeSubmit},
	}, &limited)
	var me struct {
		Key string `json:"ssh_private_key"`
	}
	if code, err := s.Call("POST", "/api/users/get_my_user", limited.Secret, nil, &me); err != nil {
		t.Fatalf("%d %v", code, err)
	}
	limitedKey, err := ssh.ParsePrivateKey([]byte(me.Key))
	if err != nil {
		t.Fatal(err)
	}
	connect := func(key ssh.Signer) *ssh.Client {
		t.Helper()
		c, err := ssh.Dial("tcp", s.Info.SSH, &ssh.ClientConfig{
			User: idText(list.Jobs[0].ID), Auth: []ssh.AuthMethod{ssh.PublicKeys(key)},
			HostKeyCallback: ssh.InsecureIgnoreHostKey(),
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	c := connect(limitedKey)
	s.Must("DELETE", "/api/v1/tokens/"+limited.Token.ID, nil, nil)
	_ = c.Wait() // closed by the server
	c = connect(ann)
	s.Must("POST", "/api/projects/lab/remove_members", map[string]any{"usernames": []string{"ann"}}, nil)
	_ = c.Wait()
	s.Must("POST", "/api/projects/lab/add_members", member, nil)
	c = connect(ann)
	if code, err := s.Call("POST", "/api/users/public_keys/delete", token, map[string]any{"ids": []string{keyID}},
		nil); err != nil {
		t.Fatalf("%d %v", code, err)
	}
	_ = c.Wait()
	c = connect(zoe)
	s.Must("PATCH", "/api/v1/users/zoe", map[string]any{"disabled": true}, nil)
	_ = c.Wait()
}
