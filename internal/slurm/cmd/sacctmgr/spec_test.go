package sacctmgr

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"bireme.dev/bireme/internal/core"
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
			known, err := setLimit(&got, parseItem(a))
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

// Every name of every limit is one that is known, and -1 takes away what it has set.
func TestLimitNames(t *testing.T) {
	t.Parallel()
	for _, k := range limitKeys {
		for _, name := range k.names {
			var l core.Limits
			value := "7"
			if known, err := setLimit(&l, parseItem(name+"="+value)); !known || err != nil {
				if known, err = setLimit(&l, parseItem(name+"=cpu=7")); !known || err != nil {
					t.Errorf("%s: known %v, %v", name, known, err)
				}
			}
			if cmp.Equal(l, core.Limits{}) {
				t.Errorf("%s set nothing", name)
			}
			if _, err := setLimit(&l, parseItem(name+"=-1")); err != nil {
				t.Errorf("%s=-1: %v", name, err)
			}
			if d := cmp.Diff(core.Limits{}, l); d != "" {
				t.Errorf("%s=-1 left %s", name, d)
			}
		}
	}
}
