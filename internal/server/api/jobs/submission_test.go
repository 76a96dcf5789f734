package jobs

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/server/api/call"
)

// plainDecode is what decodeSubmit must give, by encoding/json alone.
func plainDecode(data []byte) (*submission, error) {
	s := new(submission)
	if err := call.Unmarshal(data, &s.Submit); err != nil {
		return nil, err
	}
	s.script = []byte(s.Script)
	for _, e := range s.Env {
		s.env = append(append(s.env, e...), 0)
	}
	s.Script, s.Env = "", nil
	return s, nil
}

func checkDecode(t *testing.T, data []byte) {
	t.Helper()
	want, wantErr := plainDecode(data)
	got, err := decodeSubmit(data)
	if wantErr == nil && want != nil && strings.Count(string(want.env), "\x00") != 0 && err != nil &&
		core.ReasonOf(err) == "bad_environment" {
		return
	}
	if (err == nil) != (wantErr == nil) {
		t.Fatalf("%q: %v, encoding/json says %v", data, err, wantErr)
	}
	if err != nil {
		return
	}
	if d := cmp.Diff(want.Submit, got.Submit); d != "" {
		t.Errorf("%q (-want +got):\n%s", data, d)
	}
	if string(want.script) != string(got.script) || string(want.env) != string(got.env) {
		t.Errorf("%q: script %q, want %q; env %q, want %q", data, got.script, want.script, got.env, want.env)
	}
}

var decodeSeeds = []string{
	`{}`, `{"spec":{"name":"x"},"script":"#!/bin/sh\n\ttrue \"q\" \\ \/ \u00e4 ä \ud83d\ude00 ` +
		`\u0007","env":["A=1","B=\n"],"key":"k"}`,
	` { "env" : [ ] , "script" : "" , "strict" : true, "retry":false } `, `{"env":null,"script":null}`, `{"env":["a",]}`,
	`{"script":"a`,
	`{"script":"a"}x`, `{"x":{"y":[1,2,{"z":"}]"}]},"key":"\u0041"}`, `{"x":1.5e3,"key":"k"}`, `[]`, `nul`,
	"{\"script\":\"\xff\"}", "{\"script\":\"a\nb\"}",
	`{"spec":{"shape":{"gres":[{"name":"gpu","count":2}]},"io":{"stdout":"a\"b"}},"run":"r","config":"type: task\n"}`,
	`{"SCRIPT":"a"}`, `{"script":"a","script":"b"}`,
	`{"spec":[]}`, `{"strict":"yes"}`, `{"x":tru,"key":"a"}`, `{"key":"a" "run":"b"}`, `{"x":-,"key":"k"}`,
}

func TestDecodeSubmit(t *testing.T) {
	t.Parallel()
	for _, s := range decodeSeeds {
		checkDecode(t, []byte(s))
	}
}

func FuzzDecodeSubmit(f *testing.F) {
	for _, s := range decodeSeeds {
		f.Add([]byte(s))
	}
	f.Fuzz(checkDecode)
}

func BenchmarkDecodeSubmit(b *testing.B) {
	in := client.Submit{
		Spec: core.Spec{
			Name: "bench", Partition: core.ListPartitions("main"), TimeLimit: 3600,
			IO:   core.IO{WorkDir: "/home/ann", Stdout: "slurm-%j.out"},
			From: core.Origin{Host: "login", Dir: "/home/ann", Command: "/home/ann/job.sh", Line: "sbatch job.sh"},
		},
		Script: "#!/bin/sh\n" + strings.Repeat("echo \"hello world\" > /dev/null\n", 66), Key: client.NewKey(),
	}
	for i := range 60 {
		in.Env = append(in.Env, fmt.Sprintf("VARIABLE_%02d=%s", i, strings.Repeat("x", 88)))
	}
	data, err := json.Marshal(in)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	a := &Submissions{HashKey: make([]byte, 32)}
	for b.Loop() {
		s, err := decodeSubmit(data)
		if err != nil {
			b.Fatal(err)
		}
		a.hashOf(s.script)
		a.hashOf(s.env)
	}
}
