package slurmdb

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"bireme.dev/bireme/internal/core"
)

var update = flag.Bool("update", false, "write what is read into testdata")

// render shows all of a dump, a line each.
func render(t *testing.T, dump []byte, now core.Time) string {
	t.Helper()
	db, err := Read(bytes.NewReader(dump), Options{})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	line := func(kind string, v any) {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s %s\n", kind, text)
	}
	line("cluster", db.Cluster)
	for _, q := range db.QOS {
		line("qos", q)
	}
	for _, p := range db.Projects {
		line("project", p)
	}
	for _, u := range db.Users {
		line("user", u)
	}
	for _, l := range db.Left {
		line("left", l)
	}
	ledger := db.NewLedger(now, 7*24*3600)
	err = db.Jobs(bytes.NewReader(dump), ledger, Sink{
		Job:  func(j *core.Job) error { line("job", j); return nil },
		Step: func(s *core.Step) error { line("step", s); return nil },
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range ledger.Spent() {
		s.Raw = math.Round(s.Raw)
		for i := range s.TRES {
			s.TRES[i].Seconds = math.Round(s.TRES[i].Seconds)
		}
		line("spent", s)
	}
	line("counts", db.Counts)
	return b.String()
}

// TestRecorded reads a database that slurmdbd 22.05 made: what is in it was checked against Slurm's own commands.
func TestRecorded(t *testing.T) {
	dump, err := os.ReadFile("testdata/anchor.sql")
	if err != nil {
		t.Fatal(err)
	}
	got := render(t, dump, 1794850000e6)
	if *update {
		if err := os.WriteFile("testdata/anchor.txt", []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("testdata/anchor.txt")
	if err != nil {
		t.Fatal(err)
	}
	w, g := strings.Split(string(want), "\n"), strings.Split(got, "\n")
	for i := range max(len(w), len(g)) {
		x, y := "", ""
		if i < len(w) {
			x = w[i]
		}
		if i < len(g) {
			y = g[i]
		}
		if x != y {
			t.Fatalf("line %d:\n got %s\nwant %s", i+1, y, x)
		}
	}
}

// tiny is a database with one account, one user and what a case adds.
const tiny = "CREATE TABLE tres_table (creation_time int, deleted int, id int, type text, name text);\n" +
	"INSERT INTO tres_table VALUES (0,0,1,'cpu',''),(0,0,2,'mem',''),(0,0,4,'node',''),(0,0,5,'billing','')," +
	"(0,0,1001,'gres','gpu');\n" +
	"CREATE TABLE qos_table (id int, deleted int, name text, priority int, flags int, preempt text, preempt_mode int," +
	" usage_factor double);\n" +
	"INSERT INTO qos_table VALUES " +
	"(1,0,'normal',0,0,'',0,1),(2,0,'fast',5,4294967295,',1,9,',8,2)," +
	"(3,1,'gone',0,0,'',0,1);\n" +
	"CREATE TABLE acct_table (name text, deleted int, description text, organization text);\n" +
	"INSERT INTO acct_table VALUES ('root',0,'',''),('lab',0,'the lab','uni'),('old',1,'','');\n" +
	"CREATE TABLE user_table (name text, deleted int, admin_level int);\n" +
	"INSERT INTO user_table VALUES ('root',0,3),('ann',0,1),('bob',0,3),('left',1,1);\n" +
	"CREATE TABLE acct_coord_table (acct text, user text, deleted int);\n" +
	"INSERT INTO acct_coord_table VALUES ('lab','bob',0),('old','ann',0);\n" +
	"CREATE TABLE c_assoc_table (deleted int, is_def int, id_assoc int, user text, acct text, `partition` text," +
	" parent_acct text, shares int, max_jobs int, grp_tres text, def_qos_id int, qos text, delta_qos text);\n" +
	"INSERT INTO c_assoc_table VALUES (0,0,1,'','root','','',1,NULL,'',NULL,',1,',''),\n" +
	"(0,0,2,'','lab','','root',5,NULL,'1=8,1001=18446744073709551615',NULL,'',',+2,'),\n" +
	"(0,1,3,'ann','lab','','',2147483647,3,'',2,'',',-1,'),(0,0,4,'bob','lab','big','',1,NULL,'',NULL,'',''),\n" +
	"(1,0,5,'left','lab','','',1,NULL,'',NULL,'','');\n"

// jobs is a table of jobs with some columns of a version, and rows.
func jobsOf(rows ...string) string {
	return "CREATE TABLE c_job_table (job_db_inx int, deleted int, account text, cpus_req int, exit_code int, " +
		"job_name text," +
		" id_assoc int, id_array_job int, id_array_task int, array_task_str text, id_job int, id_qos int, id_user int," +
		" kill_requid int, nodelist text, `partition` text, state int, timelimit int, time_submit int, time_start int," +
		" time_end int, tres_alloc text, tres_req text);\nINSERT INTO c_job_table VALUES " + strings.Join(rows, ",") + ";\n"
}

// job is a row of jobsOf.
func job(index, id int, rest string) string {
	return fmt.Sprintf("(%d,0,'lab',1,0,'j',3,0,4294967294,NULL,%d,1,1000,4294967295,%s,'1=2,2=10,5=2','1=2')", index, id,
		rest)
}

func TestPolicyOfSmallDatabase(t *testing.T) {
	db, err := Read(strings.NewReader(tiny), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(db.Projects) != 1 || len(db.QOS) != 2 || len(db.Users) != 2 {
		t.Fatalf("%+v", db)
	}
	lab := db.Projects[0]
	text, _ := json.Marshal(lab)
	for _, want := range []string{
		`"shares":5`, `"grp_tres":"cpu=8"`, `"qos":["fast","normal"]`, // root's and its own
		`{"user":"ann","role":"user","shares":2147483647,"assoc":{"limits":{"max_jobs":3},` +
			`"qos":["fast"],"default_qos":"fast"}}`,
		`{"user":"bob","role":"manager"}`, // for a partition there, and coordinator
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%s is not in\n%s", want, text)
		}
	}
	for _, q := range db.QOS {
		if q.Name == "fast" && (q.PreemptMode != core.PreemptCancel || len(q.Preempt) != 1 || q.Factor() != 2) {
			t.Errorf("%+v", q)
		}
	}
	if db.Users[0].Default != "lab" || db.Users[1].Role != core.RoleAdmin {
		t.Errorf("%+v", db.Users)
	}
}

func TestJobsOfSmallDatabase(t *testing.T) {
	const ran = "'n[1-2]','p',%d,60,100,200,%d"
	dump := tiny + jobsOf(
		job(1, 7, fmt.Sprintf(ran, 3, 260)),                                        // completed
		job(2, 8, "'n1','p',1024,60,100,200,230"),                                  // sent back,
		job(4, 8, "'n1','p',5,60,230,240,250"),                                     // and failed then
		job(5, 9, "'n1','p',1,60,100,200,0"),                                       // runs
		job(6, 10, "'None assigned','p',4,4294967295,100,0,300"),                   // canceled before it ran
		strings.Replace(job(7, 7, fmt.Sprintf(ran, 3, 9000)), "'j'", "'other'", 1), // the id was used again
	) + "CREATE TABLE c_step_table (job_db_inx int, deleted int, id_step int, nodelist text, state int, step_name text," +
		" task_cnt int, time_start int, time_end int, tres_alloc text, exit_code int, user_sec int, " +
		"tres_usage_in_max text);\n" +
		"INSERT INTO c_step_table VALUES (2,0,-5,'n1',4,'batch',1,200,230,'1=2',15,3,'1=0,2=2048')," +
		"(2,0,0,'n1',1,'s',4,200,0,'1=2',0,0,''),(5,0,0,'n1',1,'s',1,200,0,'1=1',0,0,'')," +
		"(7,0,4294967291,'n1',3,'batch',1,0,0,'1=1',0,0,'');\n"
	got := render(t, []byte(dump), 1000e6)
	for _, want := range []string{
		`job {"id":7,"spec":{"name":"other",`, // of two jobs of one id, the later
		`"id":8,`,
		`"earlier":{"attempts":[{"attempt":1,"state":"PENDING","submit":100000000,` +
			`"start":200000000,"end":230000000,`,
		`"usage":{"user":3000000000,"max_rss":2048}`,
		`step {"job":8,"id":0,"name":"s","state":"CANCELLED","nodes":["n1"],"tasks":[4],"cpus":2,`, `"attempt":1`,
		`"time_limit":4611686018427387903`,
		`counts {"Jobs":3,"Attempts":1,"Unfinished":1,"Reused":1,"Steps":2,"MaxJob":10}`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is not in\n%s", want, got)
		}
	}
	if strings.Contains(got, `"id":9,`) || strings.Contains(got, `{"job":9`) {
		t.Error("a job that runs is taken over")
	}
}

func TestUsageCountsOnce(t *testing.T) {
	const day = 24 * 3600
	usage := func(name, rows string) string {
		return "CREATE TABLE c_assoc_usage_" + name +
			"_table (deleted int, id int, id_tres int, time_start int," +
			" alloc_secs int);\n" +
			"INSERT INTO c_assoc_usage_" + name + "_table VALUES " + rows + ";\n"
	}
	// Days 0 and 1 in the table of days, day 1 from its 12th hour on in that of hours, which were purged before; day 2
	// too.
	dump := tiny + usage("hour", fmt.Sprintf("(0,3,5,%d,10),(0,3,5,%d,20)", day+12*3600, 2*day)) +
		usage("day", fmt.Sprintf("(0,3,5,0,100),(0,3,5,%d,200),(0,3,5,%d,20)", day, 2*day)) +
		"CREATE TABLE c_last_ran_table (hourly_rollup int);\nINSERT INTO c_last_ran_table VALUES (3000000);\n"
	db, err := Read(strings.NewReader(dump), Options{Cluster: "c"})
	if err != nil {
		t.Fatal(err)
	}
	sum := func(half core.Seconds) float64 {
		list := db.NewLedger(core.Time(3*day)*1e6, half).Spent()
		if len(list) != 1 || list[0].User != "ann" {
			t.Fatalf("%+v", list)
		}
		return list[0].Raw
	}
	if got := sum(0); got != 100+200+20 {
		t.Errorf("%v", got)
	}
	if got := sum(day); got >= 100 || got <= 20 {
		t.Errorf("decayed it is %v", got)
	}
}

func TestFaults(t *testing.T) {
	for _, c := range []struct{ name, dump, cluster, want string }{
		{"no slurmdbd", "CREATE TABLE x (a int);", "", "no database of slurmdbd"},
		{"no resources", strings.Replace(tiny, "INSERT INTO tres_table", "INSERT INTO qos_table0", 1), "", "no tres_table"},
		{"which cluster", tiny + strings.ReplaceAll(tiny, "c_assoc", "d_assoc"), "", "several clusters (c, d)"},
		{"no such cluster", tiny, "e", `holds no cluster "e", but c`},
		{"bad id", tiny + jobsOf(job(1, 0, "'n1','p',3,60,100,200,260")), "", "line 17, byte 1866"},
		{"bad nodes", tiny + jobsOf(job(1, 1, "'n[1-','p',3,60,100,200,260")), "", "column nodelist"},
		{
			"bad resources",
			tiny + jobsOf(strings.Replace(job(1, 1, "'n1','p',3,60,100,200,260"), "1=2,2=10,5=2", "cpu=1", 1)),
			"",
			`column tres_alloc: "cpu=1"`,
		},
		{"unknown version", tiny + "CREATE TABLE c_job_table (id int);\nINSERT INTO c_job_table VALUES (1);", "", "id_job"},
		{"many nodes", tiny + jobsOf(job(1, 1, "'n[1-999999999]','p',3,60,100,200,260")), "", "column nodelist"},
	} {
		t.Run(c.name, func(t *testing.T) {
			db, err := Read(strings.NewReader(c.dump), Options{Cluster: c.cluster})
			if err == nil {
				err = db.Jobs(strings.NewReader(c.dump), db.NewLedger(0, 0), Sink{
					Job: func(*core.Job) error { return nil }, Step: func(*core.Step) error { return nil },
				}, nil)
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}
