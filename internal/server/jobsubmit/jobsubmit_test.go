package jobsubmit

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state"
	"bireme.dev/bireme/internal/slurm"
	"bireme.dev/bireme/internal/slurm/errno"
)

// using makes the plug-in lua with a body of slurm_job_submit and of slurm_job_modify.
func using(t *testing.T, submit, modify string) (*Plugins, string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "job_submit.lua")
	writeScript(t, file, submit, modify)
	p := &Plugins{Log: slog.New(slog.DiscardHandler)}
	if err := p.Use(Settings{Plugins: []string{Lua}, Script: file, Cluster: "lab"}, true); err != nil {
		t.Fatal(err)
	}
	return p, file
}

func writeScript(t *testing.T, file, submit, modify string) {
	t.Helper()
	const end = "\nend return slurm.SUCCESS end\n"
	text := "function slurm_job_submit(job_desc, part_list, submit_uid)\ndo " + submit + end +
		"function slurm_job_modify(job_desc, job_rec, part_list, modify_uid)\ndo " + modify + end +
		"slurm.log_info(\"initialized\")\nreturn slurm.SUCCESS\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func submission() *Submission {
	return &Submission{
		Spec: &core.Spec{
			Name: "j", User: "ann", UID: 1001, GID: 1002, Requeue: true,
			Shape: core.Shape{Tasks: 1, CPUsPerTask: 1, NodesMin: 1, NodesMax: 1},
		},
		Script: []byte("#!/bin/sh\n"), Env: []byte("FOO=bar\x00PATH=/bin\x00"), User: "ann", Account: "physics", By: 1001,
		Now: &state.Snapshot{},
	}
}

// TestReads: what the fields of a job that asks for nothing, and of one that asks for much, are in Slurm 22.05.8.
// Key: lua-submit.
func TestReads(t *testing.T) {
	t.Parallel()
	p, _ := using(t, `for k in string.gmatch(job_desc.comment, "%S+") do
  slurm.log_user("%s=%s", k, tostring(job_desc[k])) end
slurm.log_user("env %s", tostring(job_desc.environment.FOO))`, "")
	read := func(s *Submission, names string) string {
		t.Helper()
		s.Spec.Extra = cmpExtra(s.Spec.Extra)
		s.Spec.Extra.Comment = names
		told, err := p.Submit(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(told, " ")
	}
	want := "name=j account=nil partition=nil qos=nil time_limit=4294967294 min_nodes=4294967294 max_nodes=4294967294 " +
		"num_tasks=4294967294 cpus_per_task=65534 min_cpus=1 max_cpus=4294967294 min_mem_per_node=nil " +
		"min_mem_per_cpu=nil pn_min_cpus=65534 features=nil gres=nil tres_per_node=nil tres_per_job=nil licenses=nil " +
		"reservation=nil user_name=ann user_id=1001 group_id=1002 shared=65534 priority=4294967294 nice=4294967294 " +
		"begin_time=0 dependency=nil array_inx=nil mail_type=0 requeue=65534 ntasks_per_node=65534 contiguous=0 " +
		"req_switch=4294967294 time_min=4294967294 pn_min_tmp_disk=4294967294 default_account=physics nosuch=nil env bar"
	var names []string
	for _, w := range strings.Fields(want) {
		if name, _, ok := strings.Cut(w, "="); ok {
			names = append(names, name)
		}
	}
	if d := cmp.Diff(want, read(submission(), strings.Join(names, " "))); d != "" {
		t.Error(d)
	}
	s := submission()
	s.Spec.TimeLimit, s.Spec.Hold, s.Spec.Nice, s.Spec.Array, s.Spec.Throttle = 300, true, 3, "1-3", 2
	s.Spec.Shape = core.Shape{
		NodesMin: 2, NodesMax: 3, Tasks: 4, CPUsPerTask: 2, MemPerCPU: 7 * core.MiB, Exclusive: true, TasksPerNode: 2,
		Gres:  []core.Gres{{Name: "gpu", Type: "a100", Count: 1}},
		More:  &core.ShapeMore{GPUs: []core.Gres{{Name: "gpu", Count: 2}}, CPUsPerGPU: 1},
		Given: core.GivenTasks | core.GivenNodes | core.GivenCPUsPerTask | core.GivenMemPerCPU | core.GivenTimeLimit,
	}
	s.Spec.Extra = &core.Extra{
		MailTypes: "BEGIN,END", NodeList: "n001", Exclude: "n003", Contiguous: true, TmpDisk: 5 * core.MiB,
	}
	got := read(s, "time_limit min_nodes max_nodes num_tasks cpus_per_task min_cpus min_mem_per_cpu min_mem_per_node "+
		"pn_min_cpus gres tres_per_job cpus_per_tres shared priority nice array_inx mail_type req_nodes exc_nodes "+
		"ntasks_per_node contiguous pn_min_tmp_disk pn_min_memory")
	if d := cmp.Diff("time_limit=5 min_nodes=2 max_nodes=3 num_tasks=4 cpus_per_task=2 min_cpus=8 min_mem_per_cpu=7 "+
		"min_mem_per_node=nil pn_min_cpus=2 gres=gres:gpu:a100:1 tres_per_job=gres:gpu:2 cpus_per_tres=gres:gpu:1 "+
		"shared=0 priority=0 nice=2147483651 array_inx=1-3%2 mail_type=3 req_nodes=n001 exc_nodes=n003 "+
		"ntasks_per_node=2 contiguous=1 pn_min_tmp_disk=5 pn_min_memory=9.223372036854776e+18 env bar", got); d != "" {
		t.Error(d)
	}
}

func cmpExtra(x *core.Extra) *core.Extra {
	if x == nil {
		return &core.Extra{}
	}
	return x
}

// TestWrites: what a script sets is what is submitted.
func TestWrites(t *testing.T) {
	t.Parallel()
	p, _ := using(t, `
job_desc.name = "n"; job_desc.partition = "a,b"; job_desc.account = "acc"; job_desc.qos = "high"
job_desc.time_limit = 3; job_desc.comment = "C"; job_desc.admin_comment = "A"; job_desc.min_nodes = 2
job_desc.features = "fast&ib"; job_desc.licenses = "m:2"; job_desc.gres = "gpu:a100:2"; job_desc.min_mem_per_node = 100
job_desc.priority = 0; job_desc.nice = slurm.NICE_OFFSET + 5; job_desc.mail_type = slurm.MAIL_JOB_END
job_desc.shared = slurm.JOB_SHARED_NONE; job_desc.requeue = 0; job_desc.environment["FOO"] = nil
job_desc.environment.NEW = "x=y"; job_desc.script = "#!/bin/bash\n"; job_desc.nosuch = 1; job_desc.reservation = "r"
job_desc.user_id = 0
`, "")
	s := submission()
	if _, err := p.Submit(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	x := s.Spec.Extra
	if s.Spec.UID != 1001 || s.Spec.Name != "n" || s.Spec.Partition.String() != "a,b" || s.Spec.Project != "acc" ||
		s.Spec.QOS != "high" || s.Spec.TimeLimit != 180 || x.Comment != "C" || x.SlurmOption("admin-comment") != "A" ||
		s.Spec.Shape.NodesMin != 2 || s.Spec.Shape.NodesMax != 2 || s.Spec.Shape.Tasks != 2 ||
		x.Constraint.String() != "fast&ib" || x.Licenses.String() != "m:2" || !s.Spec.Hold || s.Spec.Nice != 5 ||
		s.Spec.Shape.MemPerNode != 100*core.MiB || x.MailTypes != "END" || !s.Spec.Shape.Exclusive || s.Spec.Requeue ||
		x.Reservation != "r" {
		t.Errorf("%+v %+v", s.Spec, x)
	}
	if d := cmp.Diff([]core.Gres{{Name: "gpu", Type: "a100", Count: 2}}, s.Spec.Shape.Gres); d != "" {
		t.Error(d)
	}
	if string(s.Env) != "PATH=/bin\x00NEW=x=y\x00" || string(s.Script) != "#!/bin/bash\n" {
		t.Errorf("%q %q", s.Env, s.Script)
	}
}

// TestAnswers: numbers that a script returns, and what it says to the submitter, as Slurm 22.05.8 takes them.
func TestAnswers(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ body, text, told string }{
		{`return slurm.ERROR`, "Unspecified error", ""},
		{`slurm.log_user("you may not\ntwo lines"); return slurm.ERROR`, "Unspecified error", "you may not|two lines"},
		{
			`return slurm.ESLURM_INVALID_ACCOUNT`, "Invalid account or account/partition combination specified",
			"",
		},
		{`return 2005`, "More processors requested than permitted", ""},
		{`return slurm.ESLURM_MISSING_TIME_LIMIT`, "Time limit specification required, but not provided", ""},
		{`return`, "", ""},
		{`error("oops")`, "", ""},
		{`local x = nil; x.y = 1`, "", ""},
		{`return "x"`, "", ""},
		{`slurm.user_msg("um %d", 3)`, "", "um 3"},
		{`slurm.log_user(("a".."b"):rep(2) .. 1 .. slurm.CLUSTER_NAME)`, "", "abab1lab"},
		{`slurm.log_user((string.gsub("a-b-c", "-(%w)", "<%1>")))`, "", "a<b><c>"},
		{`slurm.log_user(("%s %s"):format(string.find("hello", "l+")))`, "", "3 4"},
		{`slurm.log_user(slurm.time_str2mins("1-0"))`, "", "1440"},
		{`local n = 0; for k in pairs(part_list) do n = n + 1 end; slurm.log_user(n .. "," .. submit_uid)`, "", "0,1001"},
		{`for _ in pairs(slurm.jobs) do end; for _ in pairs(slurm.reservations) do end; slurm.log_user("ok")`, "", "ok"},
		{`local t = setmetatable({}, {__concat = function() return "joined" end}); slurm.log_user(t .. "x")`, "", "joined"},
	} {
		p, _ := using(t, tc.body, "")
		told, err := p.Submit(t.Context(), submission())
		if err != nil {
			if got := slurm.ErrorText(err); got != tc.text {
				t.Errorf("%s: %q, want %q", tc.body, got, tc.text)
			}
			if got := strings.Join(slurm.ErrorPreface(err, &core.Spec{}), "|"); got != tc.told {
				t.Errorf("%s: told %q, want %q", tc.body, got, tc.told)
			}
			continue
		}
		if got := strings.Join(told, "|"); tc.text != "" || got != tc.told {
			t.Errorf("%s: passes, told %q; want %q and %q", tc.body, got, tc.text, tc.told)
		}
	}
}

// TestBounds: a script that loops, takes memory or needs what it does not get refuses the job, and the next one is
// served.
func TestBounds(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ body, want string }{
		{`while true do end`, "took"},
		{`while true do pcall(function() while true do end end) end`, "took"},
		{`local s = "x"; for i = 1, 60 do s = s .. s end`, "memory"},
		{`local s = ("x"):rep(1e9)`, "memory"},
		{`local s = ("x"):rep(2^20); s = s:gsub("x", s)`, "memory"},
		{`local s = ("x"):rep(2^20); s = s:gsub("x", {x = s})`, "memory"},
		{`local s = ("x"):rep(2^20); local t = {} for i = 1, 1e5 do t[i] = s .. i end`, "memory"},
		{`local t = {} for i = 1, 1e9 do t[i] = {} end`, "took"},
		{`local s = ("x"):rep(2^20); local t = {s, s, s, s}; for i = 1, 60 do s = table.concat(t) end`, "memory"},
		{`string.find(("a"):rep(1e5), ".-.-.-zzz")`, "took"},
		{`string.find(("a"):rep(1e5), "(a*)*b")`, "took"},
		{`string.find(("a"):rep(1e6), ("a?"):rep(1e6))`, "took a pattern that is too long"},
		{`table.concat({}, "", 1, 1e15)`, "memory"},
		{`os.execute("true")`, "os.execute is not available"},
		{`io.open("/etc/passwd")`, "io.open is not available"},
		{`pcall(io.open, "/etc/passwd")`, "io.open is not available"},
		{`require("posix")`, "require is not available"},
		{`loadstring("return 1")()`, "loadstring is not available"},
		{`coroutine.wrap(function() end)()`, "coroutine.wrap is not available"},
		{`local function f() return f() + 1 end; f()`, ""}, // as any error: told in the log
		{`local t = {}; t[2^26 - 1] = 1; t[2^50] = 1`, ""},
		{`return unpack({}, 1, 1e8)`, ""},
		{`string.format("%999999999d", 1)`, ""},
	} {
		body, want := tc.body, tc.want
		p, _ := using(t, "if job_desc.name == \"j\" then "+body+" end", "")
		_, err := p.Submit(t.Context(), submission())
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", body, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v, want %q", body, err, want)
		}
		other := submission()
		other.Spec.Name = "other"
		if _, err := p.Submit(t.Context(), other); err != nil {
			t.Errorf("%s: the next job: %v", body, err)
		}
	}
}

// TestLoads: a script that cannot be loaded is told with its line; one that was edited holds from the next job on, and
// an edit that cannot be loaded leaves the previous one.
func TestLoads(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for text, want := range map[string]string{
		"x = = 1":           "job_submit.lua line:1",
		"error('no')":       "job_submit.lua:1: no",
		"x = 1":             "the function slurm_job_submit is not present",
		"while true do end": "instructions",
		"os.exit(1)":        "os.exit is not available",
	} {
		file := filepath.Join(dir, "job_submit.lua")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		p := &Plugins{Log: slog.New(slog.DiscardHandler)}
		set := Settings{Plugins: []string{Lua}, Script: file}
		if err := p.Use(set, true); err == nil || !strings.Contains(err.Error(), want) || p.Active() {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
		if err := p.Use(set, false); err == nil || !p.Active() {
			t.Errorf("%s: at the start: %v", text, err)
		}
		if _, err := p.Submit(t.Context(), submission()); err == nil ||
			core.ReasonOf(err) != slurm.ReasonSubmitPlugin {
			t.Errorf("%s: a job passes: %v", text, err)
		}
	}
	if err := Check(Settings{Plugins: []string{Lua}, Script: filepath.Join(dir, "none.lua")}); err == nil {
		t.Error("a script that is not there is taken")
	}
	p, file := using(t, `slurm.log_user("one")`, "")
	say := func() string {
		told, err := p.Submit(t.Context(), submission())
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(told, "|")
	}
	if got := say(); got != "one" {
		t.Errorf("told %q", got)
	}
	writeScript(t, file, `slurm.log_user("and two")`, "")
	if got := say(); got != "and two" {
		t.Errorf("after an edit: told %q", got)
	}
	writeScript(t, file, `slurm.log_user("three" `, "")
	if got := say(); got != "and two" {
		t.Errorf("after an edit that is wrong: told %q", got)
	}
}

// TestGlobals: globals of a script last from call to call.
func TestGlobals(t *testing.T) {
	t.Parallel()
	p, _ := using(t, `n = (n or 0) + 1; slurm.log_user(n)`, "")
	for _, want := range []string{"1", "2"} {
		if told, err := p.Submit(t.Context(), submission()); err != nil || told[0] != want {
			t.Errorf("%v %v, want %s", told, err, want)
		}
	}
}

// TestPatterns: patterns match as in Lua 5.1.
func TestPatterns(t *testing.T) {
	t.Parallel()
	p, _ := using(t, `
local function say(...) local t = {...}; for i = 1, select("#", ...) do t[i] = tostring(t[i]) end
  slurm.log_user(table.concat(t, " ")) end
say(string.find("hello world", "o w")); say(string.find("a.b", ".", 1, true)); say(string.find("hello", "l", -2))
say(string.match("key = value", "^(%w+)%s*=%s*(%w+)$")); say(string.match("2026-11-16", "(%d+)-(%d+)-(%d+)"))
say(string.match("  trim  ", "^%s*(.-)%s*$") .. "|"); say(string.match("hello", "()ll()"))
say(string.gsub("hello world", "o", "0")); say(string.gsub("abc", "%w", "%0%0")); say(string.gsub("abc", "", "-"))
say(string.gsub("$a $b", "%$(%w+)", {a = "1"})); say(string.gsub("abc", "b", function(x) return x:upper() end))
say(string.gsub("x y z", "%S", "q", 2)); say(string.find("[a]", "[%]]")); say(string.find("a-c", "[a%-]+"))
say(string.match("f(a(b)c)d", "%b()")); say(string.gsub("THE (quick) fox", "%f[%a]%a+", "W"))
say(string.match("abab", "(ab)%1")); say(string.find("abc", "x*", 4))
say(string.match("gpu:a100:2", "^gpu:?(%w*):(%d+)$"))
for k, v in string.gmatch("a=1, b=2", "(%w+)=(%w+)") do say(k, v) end
say(string.find("", "")); say(string.match("x", "y"))
say((select(2, pcall(string.find, "a", "[a")):gsub("^.*: ", "")))
say(string.match("a\0b", "%z") == "\0")
say(string.match("x^2", "^x%^(%d)")); say(string.gsub("aaa", "^a", "b")); say(string.match("0xFF", "%x+$"))
`, "")
	told, err := p.Submit(t.Context(), submission())
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"5 7", "2 2", "4 4", "key value", "2026 11 16", "trim|", "3 5", "hell0 w0rld 2", "aabbcc 3", "-a-b-c- 4", "1 $b 2",
		"aBc 1", "q q z 2", "3 3", "1 2", "(a(b)c)", "W (W) W 3", "ab", "4 3", "a100 2", "a 1", "b 2", "1 0", "nil",
		"malformed pattern (a set is not closed)", "true", "2", "baa 1", "FF",
	}
	if d := cmp.Diff(want, told); d != "" {
		t.Error(d)
	}
}

// TestBuiltIn: the plug-ins that are not scripts.
func TestBuiltIn(t *testing.T) {
	t.Parallel()
	p := &Plugins{Log: slog.New(slog.DiscardHandler)}
	if err := p.Use(Settings{Plugins: []string{RequireTimeLimit}}, true); err != nil {
		t.Fatal(err)
	}
	_, err := p.Submit(t.Context(), submission())
	if got := slurm.ErrorText(err); got != "Time limit specification required, but not provided" ||
		errno.Number(err) != 8000 {
		t.Errorf("%q, %d", got, errno.Number(err))
	}
	s := submission()
	s.Spec.TimeLimit = 60
	if _, err := p.Submit(t.Context(), s); err != nil {
		t.Error(err)
	}
}

// TestModify: a change is described alone, the job beside it; what the script sets is changed too.
func TestModify(t *testing.T) {
	t.Parallel()
	p, _ := using(t, "", `
slurm.log_info("%s", tostring(job_desc.time_limit))
if job_desc.comment == "no" then return slurm.ERROR end
if job_desc.time_limit == 7 and job_rec.time_limit == 60 and job_desc.partition == nil and
	job_desc.min_nodes == slurm.NO_VAL and job_rec.name == "upd" and job_rec.job_id == 27 and modify_uid == 5 then
	job_desc.time_limit = 9; job_desc.qos = "low"
end`)
	j := &core.Job{ID: 27, Spec: &core.Spec{Name: "upd", TimeLimit: 3600, User: "ann"}}
	limit, no := core.Seconds(420), "no"
	up := &client.Update{TimeLimit: &limit}
	err := p.Modify(t.Context(), &Change{Job: j, Update: up, By: 5, Now: &state.Snapshot{}})
	if err != nil || *up.TimeLimit != 540 || up.QOS == nil || *up.QOS != "low" || up.Comment != nil {
		t.Errorf("%+v %v", up, err)
	}
	err = p.Modify(t.Context(), &Change{Job: j, Update: &client.Update{Comment: &no}, Now: &state.Snapshot{}})
	if slurm.ErrorText(err) != "Unspecified error" {
		t.Errorf("%v", err)
	}
}

// TestStuck: a call that does not end refuses its job and those after it, and keeps nobody waiting.
func TestStuck(t *testing.T) {
	t.Parallel()
	p, _ := using(t, "", "")
	_, s := p.now()
	<-s.turn // somebody has it
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := p.Submit(ctx, submission()); err == nil {
		t.Error("a job passes a script that is busy")
	}
	s.turn <- struct{}{}
	if _, err := p.Submit(t.Context(), submission()); err != nil {
		t.Error(err)
	}
}
