//go:build e2e

package hostile

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/server/servertest"
	"bireme.dev/bireme/test/cluster"
)

func jobID(t *testing.T, text string) core.JobID {
	t.Helper()
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return core.JobID(n)
}

// submitted returns the number of a job that a call made.
func submitted(t *testing.T, status int, body string) core.JobID {
	t.Helper()
	var made struct{ ID core.JobID }
	if err := json.Unmarshal([]byte(body), &made); err != nil || status != 200 {
		t.Fatalf("a submission got %d %s", status, body)
	}
	return made.ID
}

// Fields that the engine keeps for itself are refused, wherever they come: nobody ends another's job with a forged
// component, makes the planner fail, or gets a time limit that nobody checked.
func TestForgedFieldsAreRefused(t *testing.T) {
	c := cluster.Start(t, cluster.Options{Nodes: 1, CPUs: 4})
	held := c.As(victim).Sbatch("--hold", "--wrap", "true", "-o", "/dev/null")
	runs := c.As(victim).Sbatch("--wrap", "sleep 1000", "-o", "/dev/null")
	c.WaitState(runs, core.Running)
	m := visit(t, c, mallory)
	lead := jobID(t, runs)
	forged := []string{
		fmt.Sprintf(`{"het":{"lead":%d,"offset":1,"count":2}}`, lead),
		fmt.Sprintf(`{"het":{"lead":%s,"offset":0,"count":2}}`, held),
		`{"het":{"lead":1,"offset":7,"count":2}}`, `{"het":{"lead":1,"offset":0,"count":-1}}`,
		`{"het":{"lead":1,"offset":-5,"count":2147483647}}`,
		`{"time_asked":999999999}`, `{"time_asked":-1}`, `{"fill":true}`,
	}
	for _, extra := range forged {
		for _, body := range []string{
			fmt.Sprintf(`{"spec":{"name":"x","hold":true,"extra":%s},"script":"#!/bin/sh\n:\n"}`, extra),
			fmt.Sprintf(
				`{"spec":{"name":"x","hold":true},"components":[{"name":"y","extra":%s}],"script":"#!/bin/sh\n:\n"}`, extra),
		} {
			for _, path := range []string{"/api/v1/jobs", "/api/v1/jobs/try"} {
				if status, answer := m.call("POST", path, body); status != 403 ||
					!strings.Contains(answer, "is set by the server") {
					t.Errorf("%s %s: %d %s", path, body, status, answer)
				}
			}
		}
	}
	// What the server says itself is not what the caller says.
	body := `{"spec":{"name":"x","user":"","uid":0,"gid":0,"run":"r","hold":true,"extra":{"files":"` +
		strings.Repeat("ab", 32) + `"}},"script":"#!/bin/sh\n:\n"}`
	status, answer := m.call("POST", "/api/v1/jobs", body)
	id := submitted(t, status, answer)
	if out := c.As(mallory).Run("scontrol", "show", "job", fmt.Sprint(id)); !strings.Contains(out, "UserId="+mallory+"(") {
		t.Errorf("the job is not its caller's: %s", out)
	}
	c.As(mallory).Run("scancel", fmt.Sprint(id))
	c.WaitState(runs, core.Running)
	c.WaitState(held, core.Pending)
	c.As(victim).Run("scancel", runs, held)
}

// Texts that stay are bounded wherever they come: submitted, changed, or in a component.
func TestTextsThatStayAreBounded(t *testing.T) {
	c := cluster.Start(t, cluster.Options{Nodes: 1, CPUs: 2})
	m := visit(t, c, mallory)
	status, answer := m.call("POST", "/api/v1/jobs", `{"spec":{"name":"x","hold":true},"script":"#!/bin/sh\n:\n"}`)
	id := submitted(t, status, answer)
	long := strings.Repeat("z", 1<<20)
	for name, body := range map[string]string{
		"name": `{"name":%q}`, "comment": `{"comment":%q}`, "mail": `{"mail_user":%q}`, "types": `{"mail_types":%q}`,
		"wckey": `{"wckey":%q}`, "stdout": `{"stdout":%q}`,
		"constraint": `{"constraint":%q}`, "nodes": `{"nodelist":%q}`, "licences": `{"licenses":%q}`,
		"dependency": `{"dependency":%q}`, "qos": `{"qos":%q}`, "reservation": `{"reservation":%q}`,
	} {
		if status, answer := m.call("PATCH", fmt.Sprintf("/api/v1/jobs/%d", id),
			fmt.Sprintf(body, long)); status < 400 || status >= 500 {
			t.Errorf("%s: %d %.200s", name, status, answer)
		}
	}
	for _, part := range []string{
		`"name":%q`, `"extra":{"comment":%q}`, `"extra":{"mail_user":%q}`,
		`"extra":{"options":{"x":%q}}`, `"args":[%q]`,
	} {
		body := fmt.Sprintf(`{"spec":{"name":"x","hold":true},"components":[{"name":"y",`+part+
			`}],"script":"#!/bin/sh\n:\n"}`, long)
		if status, answer := m.call("POST", "/api/v1/jobs", body); status < 400 || status >= 500 {
			t.Errorf("component %s: %d %.200s", part, status, answer)
		}
	}
	if r := c.As(mallory).Try("sbatch", "--hold", "--comment", strings.Repeat("z", 100_000), "--wrap",
		"true"); r.Code == 0 || !strings.Contains(r.Err, "limit") {
		t.Errorf("%v", r)
	}
	c.As(mallory).Run("scancel", fmt.Sprint(id))
}

// One user's held arrays leave room for everybody, and Slurm's words say which limit it was.
func TestHeldArraysLeaveRoom(t *testing.T) {
	c := cluster.Start(t, cluster.Options{Nodes: 1, CPUs: 2, Set: []string{"jobs.max_jobs=100000"}})
	var last cluster.Result
	for range 40 {
		if last = c.As(mallory).Try("sbatch", "--hold", "-a", "0-9999", "--wrap", "true", "-o", "/dev/null"); last.Code != 0 {
			break
		}
	}
	if last.Code == 0 || !strings.Contains(last.Err, "Job violates accounting/QOS policy") ||
		!strings.Contains(last.Err, "array tasks") {
		t.Errorf("%v", last)
	}
	id := c.As(victim).Sbatch("-a", "0-99", "--hold", "--wrap", "true", "-o", "/dev/null")
	done := c.As(victim).Sbatch("--wrap", "true", "-o", "/dev/null")
	c.WaitState(done, core.Completed)
	c.As(victim).Run("scancel", id)
	c.As(mallory).Run("scancel", "-u", mallory)
}

// A step's node list of blanks or commas, and a few other bodies, are refused: no panic, and the job continues.
func TestHostileStepsAreRefused(t *testing.T) {
	c := cluster.Start(t, cluster.Options{Nodes: 1, CPUs: 2})
	id := c.As(mallory).Sbatch("--wrap", "sleep 1000", "-o", "/dev/null")
	c.WaitState(id, core.Running)
	m := visit(t, c, mallory)
	for _, part := range []string{
		`"nodelist":" "`, `"nodelist":","`, `"nodelist":" , ,\t"`, `"exclude":","`,
		`"nodelist":" ","distribution":"arbitrary"`, `"tasks":-1`, `"nodes":2147483647`,
		`"mem_per_cpu":9223372036854775807`, `"gres":[{"name":"gpu","count":-1}]`, `"component":5`, `"relative":-3`,
		`"programs":[{"ranks":[{"first":-1,"last":2147483647}],"argv":["x"]}]`,
	} {
		body := `{"name":"s","argv":["true"],` + part + `}`
		if status, answer := m.call("POST", "/api/v1/jobs/"+id+"/steps", body); status < 400 || status >= 500 {
			t.Errorf("%s: %d %s", part, status, answer)
		}
	}
	c.WaitState(id, core.Running)
	c.As(mallory).Run("scancel", id)
}

// Hostile bodies from one seed against real daemons: nothing fails, and another user's work continues.
func TestHostileBodiesAgainstDaemons(t *testing.T) {
	c := cluster.Start(t, cluster.Options{Nodes: 2, CPUs: 4, Set: []string{"limits.requests_per_second=0"}})
	held := c.As(victim).Sbatch("--hold", "--wrap", "true", "-o", "/dev/null")
	runs := c.As(victim).Sbatch("--wrap", "sleep 1000", "-o", "/dev/null")
	c.WaitState(runs, core.Running)
	m := visit(t, c, mallory)
	attacks := servertest.NewAttacks(12, []core.JobID{jobID(t, held), jobID(t, runs)})
	var own []core.JobID
	for range 400 {
		at := attacks.Next(own)
		status, answer := m.call(at.Method, at.Path, at.Body)
		if status >= 500 {
			t.Errorf("%s %s gave %d %.300s for %.1000s", at.Method, at.Path, status, answer, at.Body)
		}
		if status == 200 && at.Path == "/api/v1/jobs" {
			own = append(own, submitted(t, status, answer))
		}
	}
	c.Root().Run("scancel", "-u", mallory)
	c.WaitState(runs, core.Running)
	c.WaitState(held, core.Pending)
	c.WaitState(c.As(victim).Sbatch("--wrap", "true", "-o", "/dev/null"), core.Completed)
	c.As(victim).Run("scancel", runs, held)
}
