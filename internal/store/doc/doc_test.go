package doc

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/taskset"
)

// TestLikeJSON: encoding/json reads what a codec writes, a codec reads what encoding/json writes, and both mean the
// same.
func TestLikeJSON(t *testing.T) {
	t.Parallel()
	t.Run("spec", func(t *testing.T) { t.Parallel(); rapid.Check(t, likeJSON[core.Spec]) })
	t.Run("job", func(t *testing.T) { t.Parallel(); rapid.Check(t, likeJSON[core.Job]) })
	t.Run("node", func(t *testing.T) { t.Parallel(); rapid.Check(t, likeJSON[core.Node]) })
	t.Run("step", func(t *testing.T) { t.Parallel(); rapid.Check(t, likeJSON[core.Step]) })
	t.Run("project", func(t *testing.T) { t.Parallel(); rapid.Check(t, likeJSON[core.Project]) })
	t.Run("user", func(t *testing.T) { t.Parallel(); rapid.Check(t, likeJSON[core.User]) })
}

func likeJSON[T any](t *rapid.T) {
	amounts := rapid.Custom(func(t *rapid.T) core.TRES {
		return core.TRESOf(core.Amount{Name: "cpu", Count: rapid.Int64Range(0, 1<<40).Draw(t, "cpus")},
			core.Amount{Name: "gres/gpu:a100", Count: 2})
	})
	v := rapid.MakeCustom[T](
		rapid.MakeConfig{Types: map[reflect.Type]*rapid.Generator[any]{reflect.TypeFor[core.TRES](): amounts.AsAny()}}).Draw(
		t, "value")
	fix(&v, t)
	c := New[T]()
	var d Decoder
	mine := c.Append(nil, 7, &v)
	theirs, err := json.Marshal(&v)
	if err != nil {
		t.Fatal(err)
	}
	var a, b, want T
	if version, err := c.Decode(&d, mine, &a); err != nil || version != 7 {
		t.Fatalf("version %d, %v in %s", version, err, mine)
	}
	if _, err := c.Decode(&d, theirs, &b); err != nil {
		t.Fatalf("%v in %s", err, theirs)
	}
	if err := json.Unmarshal(theirs, &want); err != nil { // what invalid UTF-8 becomes
		t.Fatal(err)
	}
	for name, got := range map[string]T{"own": a, "encoding/json's": b} {
		if diff := cmp.Diff(got, want, cmpopts.EquateEmpty(),
			cmp.Comparer(func(a, b taskset.Set) bool { return a.String() == b.String() })); diff != "" {
			t.Fatalf("%s text read back: got (-) want (+):\n%s\n%s", name, diff, mine)
		}
	}
	var read T
	if err := json.Unmarshal(mine, &read); err != nil {
		t.Fatalf("encoding/json: %v in %s", err, mine)
	}
}

// fix makes values that rapid draws at random ones that exist.
func fix(v any, t *rapid.T) {
	state := rapid.SampledFrom([]core.JobState{core.Pending, core.Running, core.OutOfMemory})
	switch v := v.(type) {
	case *core.Job:
		v.Spec, v.State = nil, state.Draw(t, "state")
		if v.Stop != nil {
			v.Stop.As = state.Draw(t, "as")
		}
		if v.Earlier != nil {
			for i := range v.Earlier.Attempts {
				v.Earlier.Attempts[i].State = state.Draw(t, "earlier")
			}
		}
		if v.Array != nil {
			v.Array.Tasks = taskset.Of(rapid.SliceOfN(rapid.IntRange(0, 999), 0, 20).Draw(t, "tasks")...)
		}
	case *core.Step:
		v.State = state.Draw(t, "state")
	}
}

func TestBadDocuments(t *testing.T) {
	t.Parallel()
	c := New[core.Spec]()
	for _, text := range []string{
		``, `{`, `[]`, `{"v"}`, `{"v":1,}`, `{"v":1}x`, `{"name":1}`, `{"uid":-1}`, `{"uid":4294967296}`,
		`{"nice":99999999999}`,
		`{"name":"x}`, `{"name":"\q"}`, `{"args":["a"}`, `{"args":["a",]}`, `{"hold":maybe}`, `{"script":"12"}`,
		`{"shape":[]}`, `{"begin":9223372036854775808}`,
		`{"extra":{"rlimits":{"a":"b"}}}`, `{"unknown":}`, `{"unknown":[1,{}`,
	} {
		var v core.Spec
		if _, err := c.Decode(&Decoder{}, []byte(text), &v); err == nil {
			t.Errorf("%s was taken for a document", text)
		}
	}
}

func TestForgiving(t *testing.T) {
	t.Parallel()
	c := New[core.Spec]()
	var v core.Spec
	text := ` { "future" : [ { "a" : "}\"" } , -1.5e3 , null ] , "name" : "\u00e4\n" , "v" : 3 , "args" : null , ` +
		`"extra" : null , "uid" : 7 } `
	version, err := c.Decode(&Decoder{}, []byte(text), &v)
	if err != nil || version != 3 || v.Name != "ä\n" || v.UID != 7 || v.Args != nil || v.Extra != nil {
		t.Fatalf("got %+v, version %d, %v", v, version, err)
	}
}

// Not parallel: it counts allocations.
func TestInterned(t *testing.T) {
	c := New[core.Spec]()
	var d Decoder
	text := c.Append(nil, 1, &core.Spec{Name: "train", User: "ann", IO: core.IO{WorkDir: "/home/ann"}})
	var v core.Spec
	// A document of strings seen before costs no allocation.
	if n := testing.AllocsPerRun(100, func() {
		if _, err := c.Decode(&d, text, &v); err != nil {
			t.Fatal(err)
		}
	}); n > 0 {
		t.Errorf("%v allocations to decode %s", n, text)
	}
}

func TestSkip(t *testing.T) {
	t.Parallel()
	text := string(New[core.Token]("id", "kind").Append(nil, 1,
		&core.Token{ID: "secret", Kind: "user", User: "ann", Hash: core.Hash{1}}))
	if text != `{"v":1,"user":"ann"}` {
		t.Errorf("got %s", text)
	}
	defer func() {
		if r, _ := recover().(string); !strings.Contains(r, "nonsense") {
			t.Errorf("a name to skip that is no field: %q", r)
		}
	}()
	New[core.Token]("nonsense")
}

func BenchmarkSpec(b *testing.B) {
	s := &core.Spec{
		Name: "train.sh", User: "ann", UID: 1000, GID: 1000, Project: "physics", Partition: core.ListPartitions("main"),
		Args: []string{"--epochs", "3"},
		Shape: core.Shape{
			NodesMin: 1, NodesMax: 1, Tasks: 1, CPUsPerTask: 1, MemPerNode: core.GiB,
			Given: core.GivenTasks,
		},
		TimeLimit: 3600,
		IO:        core.IO{WorkDir: "/home/ann/work/run", Stdout: "slurm-%j.out"},
		From: core.Origin{
			Host: "login1", Dir: "/home/ann/work/run", Command: "/home/ann/work/run/train.sh",
			Line: "sbatch train.sh --epochs 3", Sid: 4711,
		},
	}
	c := New[core.Spec]("script", "env")
	text := c.Append(nil, 1, s)
	b.Run("append", func(b *testing.B) {
		b.ReportAllocs()
		var buf []byte
		for b.Loop() {
			buf = c.Append(buf[:0], 1, s)
		}
	})
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		var d Decoder
		for b.Loop() {
			var v core.Spec
			if _, err := c.Decode(&d, text, &v); err != nil {
				b.Fatal(err)
			}
		}
	})
}
