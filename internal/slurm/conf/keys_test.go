package conf

import (
	"strings"
	"testing"
	"testing/fstest"

	"bireme.dev/bireme/internal/config"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/slurm/conf/keys"
)

// TestKeys: the table of keys says which act, and those that do are read; every other one says why it does not.
func TestKeys(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, k := range keys.All() {
		name := strings.ToLower(k.Name)
		if seen[name] {
			t.Errorf("%s is in the table twice", k.Name)
		}
		seen[name] = true
		_, read := known[name]
		switch {
		case k.Effect == keys.Acts && !read:
			t.Errorf("%s acts, says the table, but nothing reads it", k.Name)
		case k.Effect != keys.Acts && read:
			t.Errorf("%s is read; the table says that it is %s", k.Name, k.Effect)
		case k.Effect != keys.Acts && k.Why == "" && k.Form != "own" && k.Name != "HASH_VAL" && k.Name != "MULTIPLE_SLURMD":
			t.Errorf("%s has no effect, and no reason", k.Name)
		}
	}
	for name := range known {
		if !seen[name] {
			t.Errorf("%s is read, but is not in the table", name)
		}
	}
	for file, list := range keys.Others() {
		for _, k := range list {
			if k.Effect != keys.Acts && k.Why == "" {
				t.Errorf("%s: %s has no effect, and no reason", file, k.Name)
			}
		}
	}
}

// TestUnknownKeys: keys that Slurm does not have are all told, with file and line.
func TestUnknownKeys(t *testing.T) {
	t.Parallel()
	c, err := ReadFS(fstest.MapFS{
		"slurm.conf": {Data: []byte("ClusterName=a\nFooBar=1\nNodeName=n1 CPUs=1 Fo=1\nPartitionName=p Nodes=n1 Ba=2\n" +
			"MaxJobCount=abc\nTreeWidth=3\nNodeSet=s Nodes=n1 Qu=1\n")},
		"gres.conf":          {Data: []byte("Name=gpu Fil=/dev/x\n")},
		"cgroup.conf":        {Data: []byte("ConstrainCore=yes\n")},
		"job_container.conf": {Data: []byte("BasePath=/x\nBase=1\n")},
	}, "slurm.conf")
	if err != nil {
		t.Fatal(err)
	}
	notes, err := c.Apply(config.Default())
	var got strings.Builder
	for _, f := range core.FaultsOf(err) {
		got.WriteString(f.Path + " " + f.Message + "\n")
	}
	want := `slurm.conf:2 unrecognized key: FooBar
slurm.conf:5 MaxJobCount=abc: expected a number from 0 to 2147483648
gres.conf:1 unrecognized key: Fil
slurm.conf:7 unrecognized key: Qu
job_container.conf:2 unrecognized key: Base
slurm.conf:3 unrecognized key: Fo
slurm.conf:4 unrecognized key: Ba
cgroup.conf:1 unrecognized key: ConstrainCore
`
	if got.String() != want {
		t.Errorf("faults:\n%s\nwant:\n%s", got.String(), want)
	}
	if len(notes) != 2 || notes[0].Key != "TreeWidth" || notes[1].Why != "jobs see the node's /tmp" {
		t.Errorf("notes: %v", notes)
	}
}

// TestShown: the file's values are shown in the words in which Slurm 22.05.8 shows them.
func TestShown(t *testing.T) {
	t.Parallel()
	c, err := ReadFS(fstest.MapFS{"slurm.conf": {Data: []byte(`SlurmctldHost=vm(127.0.0.1)
SlurmctldHost=w
DebugFlags=backfill,Gang,cpu_bind
PrologFlags=X11
CpuFreqGovernors=performance,ondemand
TaskPluginParam=threads,verbose
SlurmctldDebug=5
PriorityFlags=calculate_running,small_relative_to_time
trackwckey=yes
EnforcePartLimits=ANY
SuspendTime=-1
ResvOverRun=unlimited
DefCpuPerGPU=2
DefMemPerGPU=1000
PrivateData=jobs
`)}}, "slurm.conf")
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{
		"SlurmctldHost[0]": "vm(127.0.0.1)", "SlurmctldHost[1]": "w", "DebugFlags": "Backfill,CPU_Bind,Gang",
		"PrologFlags": "Alloc,Contain,X11", "CpuFreqGovernors": "OnDemand,Performance", "TaskPluginParam": "verbose,threads",
		"SlurmctldDebug": "debug", "PriorityFlags": "SMALL_RELATIVE_TO_TIME,CALCULATE_RUNNING", "TrackWCKey": "Yes",
		"EnforcePartLimits": "ANY", "SuspendTime": "INFINITE", "ResvOverRun": "UNLIMITED",
		"JobDefaults": "DefCpuPerGPU=2,DefMemPerGPU=1000", "PrivateData": "",
	} {
		if got := c.shown()[key]; got != want {
			t.Errorf("%s is shown as %q, want %q", key, got, want)
		}
	}
}

// TestAuthAltParameters: which JWTs the REST API takes.
func TestAuthAltParameters(t *testing.T) {
	t.Parallel()
	apply := func(value string) (*config.Config, error) {
		c, err := ReadFS(fstest.MapFS{
			"slurm.conf": {Data: []byte("ClusterName=a\nAuthAltTypes=auth/jwt\nAuthAltParameters=" + value + "\n")},
		}, "slurm.conf")
		if err != nil {
			t.Fatal(err)
		}
		cfg := config.Default()
		_, err = c.Apply(cfg)
		return cfg, err
	}
	cfg, err := apply("jwt_key=/etc/jwt.key,jwks=/etc/jwks.json,userclaimfield=login,disable_token_creation")
	want := config.Default().Tokens
	want.JWTKey, want.JWKS, want.JWTUserClaim, want.JWTAdminsOnly = "/etc/jwt.key", "/etc/jwks.json", "login", true
	if err != nil || cfg.Tokens != want {
		t.Errorf("%+v, %v", cfg.Tokens, err)
	}
	_, err = apply("jwt_keys=/x")
	if f := core.FaultsOf(err); len(f) != 1 || f[0].Path != "slurm.conf:3" || !strings.Contains(f[0].Message, "jwt_keys") {
		t.Errorf("a parameter that there is not: %v", f)
	}
}
