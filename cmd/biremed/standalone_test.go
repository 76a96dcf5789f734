package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bireme.dev/bireme/internal/core"
)

func TestQuote(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"unix:/tmp/x.sock,http://h:1": "unix:/tmp/x.sock,http://h:1", "": "''", "a b": "'a b'", "it's": `'it'\''s'`,
		"$(x)": "'$(x)'",
	} {
		if got := quote(in); got != want {
			t.Errorf("quote(%q) is %s, want %s", in, got, want)
		}
	}
}

func TestMebibytes(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]core.Bytes{
		"": 0, "4096": 4 * core.GiB, "16G": 16 * core.GiB,
		"512M": 512 * core.MiB,
	} {
		if got, err := mebibytes(in); err != nil || got != want {
			t.Errorf("%q is %d, %v; want %d", in, got, err, want)
		}
	}
	for _, bad := range []string{"-1", "much", "-2G"} {
		if _, err := mebibytes(bad); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

// A later start takes the flags it is not given from the one before.
func TestFlagsAreRemembered(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "d")
	settled := func(args ...string) standaloneFlags {
		t.Helper()
		c := newStandaloneCommand()
		var f standaloneFlags
		f.Prefix = "n"
		// The same flags on a struct the test can see.
		fl := c.Flags()
		if err := fl.Parse(append(args, "--dir", dir)); err != nil {
			t.Fatal(err)
		}
		for name, into := range map[string]*string{
			"node-names": &f.NodeNames, "listen": &f.Listen,
			"memory": &f.Hardware.Memory, "dir": &f.dir,
		} {
			*into, _ = fl.GetString(name)
		}
		f.Nodes, _ = fl.GetInt("nodes")
		f.Set, _ = fl.GetStringArray("set")
		f.Hardware.CPUs, _ = fl.GetInt32("cpus")
		if err := f.settle(c); err != nil {
			t.Fatal(err)
		}
		if err := f.save(); err != nil {
			t.Fatal(err)
		}
		return f
	}
	first := settled("--nodes", "4", "--cpus", "2", "--set", "timers.fence=5m")
	if second := settled(); !cmp.Equal(first, second, cmp.AllowUnexported(standaloneFlags{})) {
		t.Errorf("nothing given: %+v, before %+v", second, first)
	}
	if third := settled("--cpus", "8"); third.Nodes != 4 || third.Hardware.CPUs != 8 || len(third.Set) != 1 {
		t.Errorf("only --cpus given: %+v", third)
	}
	if fourth := settled("--node-names", "x[1-3]"); fourth.Nodes != 3 || fourth.NodeNames != "x[1-3]" {
		t.Errorf("other nodes: %+v", fourth)
	}
	if fifth := settled("--nodes", "0"); fifth.Nodes != 0 || fifth.NodeNames != "" {
		t.Errorf("the machine itself: %+v", fifth)
	}
}

func TestStandaloneRefusesWithFalse(t *testing.T) {
	t.Parallel()
	long := filepath.Join(os.TempDir(), strings.Repeat("x", 120))
	for name, tc := range map[string]struct {
		args []string
		says string
	}{
		"unknown flag":       {[]string{"--bogus"}, "bogus"},
		"no number":          {[]string{"--nodes", "many"}, "many"},
		"too many":           {[]string{"--nodes", "1000000"}, "10000"},
		"bad names":          {[]string{"--node-names", "n[1-"}, "node-names"},
		"two counts":         {[]string{"--nodes", "2", "--node-names", "n[1-3]"}, "3 names"},
		"bad memory":         {[]string{"--memory", "much"}, "--memory"},
		"bad gres":           {[]string{"--gres", "gpu:x:y:z"}, "--gres"},
		"bad fake":           {[]string{"--fake-gpus", "8"}, "--fake-gpus"},
		"gres and fake":      {[]string{"--fake-gpus", "A100:2", "--gres", "gpu:2"}, "cannot be used together"},
		"operand":            {[]string{"what"}, "what"},
		"long directory":     {[]string{"--dir", long}, "too long"},
		"comma in directory": {[]string{"--dir", "/tmp/a,b"}, "comma"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out, errs bytes.Buffer
			args := append([]string{"standalone", "--dir", filepath.Join(t.TempDir(), "d")}, tc.args...)
			code := run(args, &out, &errs)
			if code == 0 || out.String() != "false\n" || !strings.Contains(errs.String(), tc.says) {
				t.Errorf("exit %d, %q on stdout, %q on stderr", code, out.String(), errs.String())
			}
		})
	}
}

// A cluster that runs reads its files again; its nodes stay those it was started with.
func TestSettingsAreReadAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	site, own := filepath.Join(dir, "slurm.conf"), filepath.Join(dir, "config.yml")
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	head := "ClusterName=c\nSlurmctldHost=h\nNodeName=n[1-2] CPUs=4 RealMemory=100\n"
	write(site, head+"PartitionName=p Nodes=ALL Default=YES MaxTime=60\n")
	f := &standaloneFlags{dir: dir, Prefix: "n", SlurmConf: site}
	cmd := newStandaloneCommand()
	if err := f.readSite(cmd); err != nil {
		t.Fatal(err)
	}
	f.Nodes = 2
	c := &cluster{f: f, notes: new(bytes.Buffer)}
	var err error
	if c.nodes, err = f.nodes(); err != nil {
		t.Fatal(err)
	}
	if c.cfg, err = c.settings("127.0.0.1:1"); err != nil {
		t.Fatal(err)
	}

	write(site, head+"PartitionName=p Nodes=ALL Default=YES MaxTime=30\n")
	write(own, "priority: {type: multifactor}\n")
	next, err := c.reload()
	if err != nil {
		t.Fatal(err)
	}
	if next.Partitions[0].MaxTime != 1800 || next.Priority.Type != "multifactor" || len(next.CoreNodes()) != 2 ||
		next.Server.AgentListen != "127.0.0.1:1" {
		t.Errorf("read again: %+v", next)
	}
	write(own, "priorty: {}\n")
	if _, err := c.reload(); err == nil || !strings.Contains(core.FaultsOf(err)[0].Message, "did you mean priority?") {
		t.Errorf("an unknown key: %v", err)
	}
	write(own, "")
	write(site, head+"NodeName=n3 CPUs=4 RealMemory=100\nPartitionName=p Nodes=ALL Default=YES\n")
	if _, err := c.reload(); err == nil || !strings.Contains(err.Error(), "n[1-3]") {
		t.Errorf("other nodes: %v", err)
	}
}
