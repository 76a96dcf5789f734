package server_test

import (
	"strings"
	"testing"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/coretest"
	"bireme.dev/bireme/internal/server/servertest"
)

// auditOf finds an entry of the log.
func auditOf(s *servertest.Server, query, answer string) (found core.AuditEntry) {
	var list client.AuditList
	s.Must("GET", "/api/v1/audit?"+query, nil, &list)
	for _, e := range list.Entries {
		if e.Answer == answer {
			return e
		}
	}
	return found
}

func TestAuditTellsWhoAskedForWhat(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t)
	ann, bob, _, boss := people(s)
	var made client.Submitted
	if status, err := s.Call("POST", "/api/v1/jobs", ann, submitBody(), &made); err != nil {
		t.Fatal(status, err)
	}
	path, job := "/api/v1/jobs/"+idText(made.ID), "job "+idText(made.ID)
	name := "y"
	call := func(method, path, token string, body any, want int) {
		t.Helper()
		if status, err := s.Call(method, path, token, body, nil); status != want {
			t.Errorf("%s %s: %d %v, want %d", method, path, status, err, want)
		}
	}
	call("PATCH", path, bob, client.Update{Name: &name}, 403)
	call("GET", path+"/script", bob, nil, 403)
	call("GET", path+"/script", boss, nil, 200)
	call("PATCH", path, boss, client.Update{Name: &name}, 200)
	call("PATCH", path, ann, client.Update{Name: &name}, 200)
	call("POST", "/api/v1/jobs/cancel", bob, client.Cancel{IDs: []string{idText(made.ID)}}, 200)
	call("PATCH", "/api/v1/users/bob", boss, map[string]string{"role": "manager"}, 200)
	call("GET", "/api/v1/jobs", "bm_nonsense", nil, 401)
	call("GET", "/api/v1/audit", bob, nil, 403)
	call("POST", "/api/v1/tokens", bob, client.NewToken{Name: "laptop"}, 200)
	call("POST", "/api/v1/tokens", bob, client.NewToken{User: "ann", Name: "stolen"}, 403)
	call("POST", "/api/v1/join", "", client.Join{Token: "bm_secret", Node: "n7", CSR: "x"}, 401)

	check := func(e core.AuditEntry, user core.UserName, object string, owner core.UserName) {
		t.Helper()
		if e.User != user || e.Object != object || e.Owner != owner || e.At == 0 || e.Addr == "" || e.Seq == 0 ||
			user != "" && e.Token == "" {
			t.Errorf("%+v, want %s %q of %q", e, user, object, owner)
		}
	}
	check(auditOf(s, "user=bob&action=job.update", "denied"), "bob", job, "")
	check(auditOf(s, "user=bob&action=job.script", "denied"), "bob", job, "")
	check(auditOf(s, "user=bob&action=job.cancel", "denied"), "bob", "", "")
	check(auditOf(s, "user=boss&action=job.script", "ok"), "boss", job, "ann")
	check(auditOf(s, "user=boss&action=job.update", "ok"), "boss", job, "ann")
	e := auditOf(s, "object=user+bob", "ok")
	if check(e, "boss", "user bob", ""); !strings.Contains(e.Detail, `"role":"manager"`) {
		t.Errorf("the change is not told: %+v", e)
	}
	check(auditOf(s, "action=sign-in", "unknown_user"), "", "/api/v1/jobs", "")
	check(auditOf(s, "action=sign-in&user=ann", "ok"), "ann", "", "")
	check(auditOf(s, "action=audit.read&user=bob", "denied"), "bob", "audit log", "")
	// one that was never made has no id
	check(auditOf(s, "action=token.create&user=bob", "denied"), "bob", "token (stolen)", "ann")
	join := auditOf(s, "action=node.join", "unknown_user")
	if join.Object != "node n7" || join.UID != -1 || strings.Contains(join.Detail+join.Message, "secret") {
		t.Errorf("a join that was refused: %+v", join)
	}
	var own client.AuditList
	s.Must("GET", "/api/v1/audit?user=ann&action=job", nil, &own)
	if len(own.Entries) != 0 {
		t.Errorf("a user's own work is in the audit log: %+v", own.Entries)
	}
	var me client.Whoami
	s.Must("GET", "/api/v1/whoami", nil, &me)
	if e := auditOf(s, "action=audit.read&user="+string(me.User), "ok"); e.UID != int64(me.UID) {
		t.Errorf("reading it is not told: %+v", e)
	}
}

// What an administrator was told is done is in the log when the answer comes, and after the next start, numbered on.
func TestAuditIsThereWhenTheAnswerComes(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t)
	for i := range 20 {
		name := core.ProjectName("p" + idText(core.JobID(i)))
		s.Must("POST", "/api/v1/projects", core.Project{Name: name}, nil)
		var list client.AuditList
		s.Must("GET", "/api/v1/audit?limit=1&action=project.create", nil, &list)
		if len(list.Entries) != 1 || list.Entries[0].Object != "project "+string(name) {
			t.Fatalf("after the answer the log's last is %+v", list.Entries)
		}
	}
	var before, after client.AuditList
	s.Must("GET", "/api/v1/audit?action=project", nil, &before)
	s.Stop()
	s.Start()
	s.Must("GET", "/api/v1/audit?action=project", nil, &after)
	if len(after.Entries) != 20 || after.Entries[0] != before.Entries[0] {
		t.Errorf("after a restart: %d entries", len(after.Entries))
	}
}

// Whoever reaches for a job that private_data hides is told that it is not there; the audit log has a denial, with the
// owner. For a job that never was it has nothing.
func TestAuditTellsOfHiddenJobs(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t, "private_data=jobs")
	ann, _, _, _ := people(s)
	uid := uint32(2)
	eve := s.Token(core.User{Name: "eve", UnixName: "bin", UID: &uid})
	var made, other client.Submitted
	for _, to := range []*client.Submitted{&made, &other} {
		if status, err := s.Call("POST", "/api/v1/jobs", ann, submitBody(), to); err != nil {
			t.Fatal(status, err)
		}
	}
	if _, err := s.Call("POST", "/api/v1/jobs/cancel", ann, client.Cancel{IDs: []string{idText(other.ID)}},
		nil); err != nil {
		t.Fatal(err)
	}
	name := "y"
	depends := submitBody()
	depends.Spec.Extra = &core.Extra{Dependency: coretest.Dependency("afterok:" + idText(made.ID))}
	for _, x := range []struct {
		method, path, action string
		body                 any
		id                   core.JobID
		want                 int
	}{
		{"GET", "/api/v1/jobs/" + idText(made.ID), "read", nil, made.ID, 404},
		{"GET", "/api/v1/jobs/" + idText(made.ID) + "/script", "job.script", nil, made.ID, 404},
		{"GET", "/api/v1/jobs/" + idText(other.ID) + "/logs", "job.logs", nil, other.ID, 404}, // it has ended
		{"PATCH", "/api/v1/jobs/" + idText(made.ID), "job.update", client.Update{Name: &name}, made.ID, 404},
		{"POST", "/api/v1/jobs/cancel", "job.cancel", client.Cancel{IDs: []string{idText(made.ID)}}, made.ID, 200},
		{"POST", "/api/v1/jobs", "job.submit", depends, made.ID, 200},
	} {
		if status, err := s.Call(x.method, x.path, eve, x.body, nil); status != x.want {
			t.Errorf("%s %s: %d %v, want %d", x.method, x.path, status, err, x.want)
		}
		e := auditOf(s, "user=eve&action="+x.action, "denied")
		if e.User != "eve" || e.Object != "job "+idText(x.id) || e.Reason != "hidden" || x.action != "job.submit" &&
			e.Owner != "ann" {
			t.Errorf("%s %s is in the audit log as %+v", x.method, x.path, e)
		}
	}
	if status, _ := s.Call("DELETE", "/api/v1/tokens/"+idText(made.ID), eve, nil, nil); status != 404 {
		t.Errorf("a token that never was: %d", status)
	}
	if e := auditOf(s, "user=eve&action=token.revoke", "denied"); e.User != "" {
		t.Errorf("a token with the id of a hidden job is in the audit log as %+v", e)
	}
	if status, _ := s.Call("GET", "/api/v1/jobs/999999/env", eve, nil, nil); status != 404 {
		t.Errorf("a job that never was: %d", status)
	}
	if e := auditOf(s, "user=eve&action=job.env", "denied"); e.User != "" {
		t.Errorf("a job that never was is in the audit log: %+v", e)
	}
}

// A run that private_data hides cannot be stopped by others: they are told that there is none, in the words for a name
// that never was one, and the audit log has a denial with the owner. The run continues.
func TestHiddenRunCannotBeStopped(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t, "private_data=jobs")
	ann, _, _, _ := people(s)
	uid := uint32(2)
	eve := s.Token(core.User{Name: "eve", UnixName: "bin", UID: &uid})
	body := submitBody()
	body.Run, body.Config = "train", "type: task\n"
	var made client.Submitted
	if status, err := s.Call("POST", "/api/v1/jobs", ann, body, &made); err != nil {
		t.Fatal(status, err)
	}
	stop := func(name string) (status int, text string) {
		t.Helper()
		status, err := s.Call("POST", "/api/v1/runs/"+name+"/stop", eve, nil, nil)
		if err == nil {
			t.Fatalf("a user stopped run %s of another", name)
		}
		return status, strings.ReplaceAll(err.Error(), name, "NAME")
	}
	absent, absentText := stop("nosuch")
	if e := auditOf(s, "user=eve&action=run.stop", "denied"); e.User != "" {
		t.Errorf("a run that never was is in the audit log: %+v", e)
	}
	hidden, hiddenText := stop("train")
	if hidden != 404 || hidden != absent || hiddenText != absentText {
		t.Errorf("a hidden run: %d %s; one that never was: %d %s", hidden, hiddenText, absent, absentText)
	}
	e := auditOf(s, "user=eve&action=run.stop", "denied")
	if e.User != "eve" || e.Object != "run train" || e.Reason != "hidden" || e.Owner != "ann" {
		t.Errorf("stopping a hidden run is in the audit log as %+v", e)
	}
	if j := s.Job(made.ID); j.Stop != nil || j.State.Final() {
		t.Errorf("the job of the hidden run: %s, %+v", j.State, j.Stop)
	}
	if status, err := s.Call("POST", "/api/v1/runs/train/stop", ann, nil, nil); err != nil {
		t.Errorf("its owner: %d %v", status, err)
	}
}
