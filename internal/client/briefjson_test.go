package client

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bireme.dev/bireme/internal/core"
)

func someBriefs(n int) []Brief {
	list := make([]Brief, n)
	for i := range list {
		list[i] = Brief{
			ID: core.JobID(i + 1), Name: fmt.Sprintf("job-%d", i), User: "alice", UID: 1000, Project: "physics",
			Partition: "main",
			QOS:       "normal", State: core.Pending, Reason: core.ReasonPriority, Priority: 10163, Submit: 1794704932000000,
			Limit: 600, Nodes: 1, CPUs: 1,
		}
	}
	return list
}

// hard values: escapes, zero and extreme numbers, every field.
func hardBriefs() []Brief {
	return []Brief{
		{},
		{
			ID: 1 << 40, Base: 7, Task: 3, Tasks: "5-20%4", Name: "quote \" back \\ tab\t <&> ünïcode", User: "bob",
			UID:     4294967295,
			Project: "p", Partition: "a,b", QOS: "q", State: core.OutOfMemory, Flags: core.Completing | core.HeldRequeues,
			Reason: "X", Priority: 4294967295, Submit: -5, Start: 1, End: 2, Elapsed: 3, Limit: core.Forever, Nodes: 99,
			CPUs:     2147483647,
			NodeList: "n[001-008]", Run: "r-1",
		},
		{ID: 2, Name: "\x01\xff", State: core.Running},
	}
}

func TestBriefWriterEqualsEncodingJSON(t *testing.T) {
	t.Parallel()
	for _, b := range append(hardBriefs(), someBriefs(3)...) {
		want, err := json.Marshal(&b)
		if err != nil {
			t.Fatal(err)
		}
		if got := AppendBrief(nil, &b); !bytes.Equal(got, want) {
			t.Errorf("AppendBrief\n got %s\nwant %s", got, want)
		}
	}
}

func TestBriefReaderEqualsEncodingJSON(t *testing.T) {
	t.Parallel()
	list := BriefList{Jobs: append(hardBriefs(), someBriefs(3)...), Seq: 12, Now: 1794704932000001}
	compact, _ := json.Marshal(&list)
	indented, _ := json.MarshalIndent(&list, "", "  ")
	extra := []byte(
		`{"new":{"a":[1,{"b":"]}"}]},"jobs":[{"id":1,"future":["x",{}],"name":"a","user":"u","part":"p",` +
			`"state":"RUNNING","submit":1,"nodes":1,"cpus":1}],"seq":3}`)
	for _, data := range [][]byte{compact, indented, extra, []byte(`{"jobs":null}`), []byte(`{"jobs":[]}`), []byte(`{}`)} {
		var want BriefList
		if err := json.Unmarshal(data, &want); err != nil {
			t.Fatal(err)
		}
		got, err := DecodeBriefs(bytes.Clone(data))
		if err != nil {
			t.Fatalf("%.100s: %v", data, err)
		}
		if len(want.Jobs) == 0 {
			want.Jobs, got.Jobs = nil, nil
		}
		if d := cmp.Diff(&want, got); d != "" {
			t.Errorf("%.100s: (-want +got)\n%s", data, d)
		}
	}
}

func FuzzDecodeBriefs(f *testing.F) {
	data, _ := json.Marshal(BriefList{Jobs: hardBriefs()})
	f.Add(data)
	f.Add([]byte(`{"jobs":[{"id":`))
	f.Add([]byte(`{"jobs":[{"name":"\u00`))
	f.Fuzz(func(t *testing.T, data []byte) {
		list, err := DecodeBriefs(data)
		if err != nil {
			return
		}
		for i := range list.Jobs {
			again, err := DecodeBriefs(append(AppendBrief([]byte(`{"jobs":[`), &list.Jobs[i]), `]}`...))
			if err != nil || len(again.Jobs) != 1 {
				t.Fatalf("written again it is not read: %v", err)
			}
		}
	})
}

func BenchmarkDecodeBriefs(b *testing.B) {
	data := []byte(`{"jobs":[`)
	for i, j := range someBriefs(50000) {
		if i > 0 {
			data = append(data, ',')
		}
		data = AppendBrief(data, &j)
	}
	data = append(data, `]}`...)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, err := DecodeBriefs(data); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppendBrief(b *testing.B) {
	list := someBriefs(1000)
	buf := make([]byte, 0, 1<<20)
	for b.Loop() {
		buf = buf[:0]
		for i := range list {
			buf = AppendBrief(buf, &list[i])
		}
	}
}
