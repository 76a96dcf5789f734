package sacctmgr

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/slurm/slurmtest"
)

// What is to be found and what is to be set, with keys in any case, and signs before the equals sign.
func TestItems(t *testing.T) {
	t.Parallel()
	one := func(key string, op byte, value, raw string) item {
		return item{key: key, op: op, value: value, raw: raw}
	}
	for text, tc := range map[string]struct {
		args       []string
		where, set []item
	}{
		"names": {[]string{"alice,bob"}, []item{one("", '=', "alice,bob", "alice,bob")}, nil},
		"where and set": {
			[]string{"Where", "User=alice", "SET", "FairShare=5"},
			[]item{one("user", '=', "alice", "User=alice")},
			[]item{one("fairshare", '=', "5", "FairShare=5")},
		},
		"set then where": {
			[]string{"set", "qos+=high", "where", "name=a"},
			[]item{one("name", '=', "a", "name=a")},
			[]item{one("qos", '+', "high", "qos+=high")},
		},
		"minus, quotes": {[]string{"set", `qos-="low"`}, nil, []item{one("qos", '-', "low", `qos-="low"`)}},
		"value with =": {
			[]string{"set", "GrpTRES=cpu=4,gres/gpu=2"},
			nil,
			[]item{one("grptres", '=', "cpu=4,gres/gpu=2", "GrpTRES=cpu=4,gres/gpu=2")},
		},
		"nothing to set": {[]string{"set", "maxwall="}, nil, []item{one("maxwall", '=', "", "maxwall=")}},
	} {
		where, set := items(tc.args)
		if d := cmp.Diff(tc.where, where, cmp.AllowUnexported(item{})) +
			cmp.Diff(tc.set, set, cmp.AllowUnexported(item{})); d != "" {
			t.Errorf("%s: %s", text, d)
		}
	}
}

// Limits are set, laid over each other and taken away with -1.
func TestLimits(t *testing.T) {
	t.Parallel()
	n := func(i int64) *int64 { return &i }
	for text, tc := range map[string]struct {
		args []string
		want core.Limits
		err  bool
	}{
		"counts": {
			args: []string{"MaxJobs=3", "maxsubmit=9", "GrpJobs=0"},
			want: core.Limits{MaxJobs: n(3), MaxSubmit: n(9), GrpJobs: n(0)},
		},
		"names of QOS": {
			args: []string{"MaxJobsPerUser=3", "MaxSubmitJobsPU=9"},
			want: core.Limits{MaxJobs: n(3), MaxSubmit: n(9)},
		},
		"taken away": {args: []string{"MaxJobs=3", "MaxJobs=-1", "MaxWall=60", "MaxWall=-1"}},
		"wall": {
			args: []string{"MaxWall=1-00:00:00", "GrpWall=90"},
			want: core.Limits{MaxWall: n(1440), GrpWall: n(90)},
		},
		"no wall":           {args: []string{"MaxWall=60", "MaxWall=unlimited"}},
		"not a number":      {args: []string{"MaxJobs=many"}, err: true},
		"less than nothing": {args: []string{"MaxJobs=-2"}, err: true},
		"unknown":           {args: []string{"MaxFun=1"}, err: true},
		"resources": {
			args: []string{"GrpTRES=cpu=4,node=2", "GrpTRES=cpu=8", "GrpNodes=-1", "MaxCPUs=16"},
			want: core.Limits{GrpTRES: core.TRES{{Name: "cpu", Count: 8}}, MaxTRESPerJob: core.TRES{{Name: "cpu", Count: 16}}},
		},
		"no resources":     {args: []string{"GrpTRES=cpu=4,node=2", "GrpTRES="}},
		"resource unknown": {args: []string{"GrpTRES=cpu=lots"}, err: true},
	} {
		var got core.Limits
		var failed bool
		for _, a := range tc.args {
			known, err := setAnyLimit(&got, parseItem(a))
			failed = failed || err != nil || !known
		}
		if failed != tc.err {
			t.Errorf("%s: failed %v, not %v", text, failed, tc.err)
		}
		if d := cmp.Diff(tc.want, got); d != "" && !tc.err {
			t.Errorf("%s: %s", text, d)
		}
	}
}

// setAnyLimit sets a limit by its name as an association's, or as a QOS's.
func setAnyLimit(l *core.Limits, it item) (known bool, err error) {
	for _, table := range [][]keyword{associationKeys, qosKeys} {
		if key, ok := match(table, it.key); ok {
			return setLimit(l, key, it)
		}
	}
	return false, nil
}

// Every key that can be set stands for a setter, in full and cut to its least letters, and -1 takes away what it has
// set.
func TestKeys(t *testing.T) {
	t.Parallel()
	s := &records{policy: &core.Policy{QOS: []core.QOS{{Name: "normal"}, {Name: "7"}}}}
	set := map[string]func(it item) (any, any, bool, error){
		"association": func(it item) (any, any, bool, error) {
			var m core.Member
			known, err := s.setAssoc(target{&m.Shares, &m.Assoc}, it, nil)
			return m, core.Member{}, known, err
		},
		"qos": func(it item) (any, any, bool, error) {
			var q core.QOS
			known, err := s.setQOS(&q, it)
			return q, core.QOS{}, known, err
		},
	}
	for kind, table := range map[string][]keyword{"association": associationKeys, "qos": qosKeys} {
		for _, k := range table {
			for _, name := range []string{k.name, k.name[:k.least]} {
				done := false
				for _, value := range []string{"7", "cpu=7", "NoDecay", "cancel"} {
					got, none, known, err := set[kind](parseItem(name + "=" + value))
					if !known {
						t.Fatalf("%s %s is not known", kind, name)
					}
					done = done || err == nil && !cmp.Equal(got, none)
				}
				if !done {
					t.Errorf("%s %s sets nothing", kind, name)
				}
			}
		}
	}
}

// [acct.id-panic] Every field can be asked of every listing.
func TestEveryFieldOfEveryEntity(t *testing.T) {
	t.Parallel()
	c := slurmtest.Lab()
	c.Handle = func(w http.ResponseWriter, r *http.Request) bool {
		var body any
		switch strings.TrimPrefix(r.URL.Path, "/api/v1/") {
		case "policy":
			body = core.Policy{
				QOS: []core.QOS{{Name: "normal", ID: 1}, {Name: "high", ID: 2, Priority: 10}},
				Projects: []core.Project{
					{Name: "lab", ID: 3, Members: []core.Member{{User: "ann", ID: 4, Role: core.RoleManager}}},
					{Name: "sub", ID: 5, Parent: "lab"},
				},
			}
		case "users":
			body = client.UserList{Users: []core.User{{Name: "ann", Default: "lab", WCKeys: []string{"k"}}, {Name: "bob"}}}
		case "audit":
			body = client.AuditList{Entries: []core.AuditEntry{{Action: "user.create", User: "root"}}}
		default:
			return false
		}
		json.NewEncoder(w).Encode(body)
		return true
	}
	c.Reservations = []client.Reservation{{}}
	c.Start(t)
	for what := range listing {
		for i := range columns {
			for _, more := range []string{"", "withassoc"} {
				args := []string{"show", what, "format=" + columns[i].name}
				if more != "" {
					args = append(args, more)
				}
				if got := c.Run(t, "sacctmgr", Run, args); got.Code != 0 {
					t.Errorf("sacctmgr %q: %+v", args, got)
				}
			}
		}
	}
}
