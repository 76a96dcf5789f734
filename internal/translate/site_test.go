package translate

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"

	"bireme.dev/bireme/internal/config"
	dstack "bireme.dev/bireme/internal/dstack/config"
	"bireme.dev/bireme/internal/slurm/conf"
)

const siteConf = `ClusterName=anchor
SlurmctldPidFile=/run/slurmctld.pid
AccountingStorageEnforce=limits,qos
PriorityType=priority/multifactor
PriorityWeightAge=1000
SchedulerParameters=bf_continue,defer
NodeName=DEFAULT CPUs=8 RealMemory=16000
NodeName=gpu[1-2] NodeAddr=10.0.0.[11-12] Gres=gpu:a100:2 Feature=a100,nvlink
NodeName=cpu[1-3] Weight=5
NodeName=cloud[1-9] State=CLOUD
PartitionName=GPU_fast Nodes=gpu[1-2] MaxTime=24:00:00 AllowAccounts=physics,chemistry AllowQos=high DenyQos=low
PartitionName=all Nodes=ALL Default=YES DefaultTime=60
`

func site(t *testing.T, text string) (*conf.Conf, *Result) {
	t.Helper()
	c, err := conf.ReadFS(fstest.MapFS{"slurm.conf": {Data: []byte(text)}}, "slurm.conf")
	if err != nil {
		t.Fatal(err)
	}
	out, err := Site(c, Options{Name: "slurm.conf"})
	if err != nil {
		t.Fatal(err)
	}
	return c, out
}

// TestSite: the settings mean what slurm.conf means, and each file is taken by its reader.
func TestSite(t *testing.T) {
	t.Parallel()
	c, out := site(t, siteConf)
	want := config.Default()
	if _, err := c.Apply(want); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range out.Files {
		names = append(names, f.Name)
		switch {
		case f.Name == SettingsFile:
			got, err := config.Parse(f.Name, []byte(f.Text))
			if err != nil {
				t.Fatalf("%v in\n%s", err, f.Text)
			}
			for i := range reflect.TypeFor[config.Config]().NumField() {
				field := reflect.TypeFor[config.Config]().Field(i)
				if !field.IsExported() || field.Tag.Get("yaml") == "" || field.Tag.Get("yaml") == "-" {
					continue
				}
				a, b := reflect.ValueOf(got).Elem().Field(i).Interface(), reflect.ValueOf(want).Elem().Field(i).Interface()
				if s, ok := b.(config.Scheduling); ok {
					s.SelectAs = "" // no setting
					b = s
				}
				if fmt.Sprintf("%+v", a) != fmt.Sprintf("%+v", b) {
					t.Errorf("%s: read back as %+v, want %+v in\n%s", field.Name, a, b, f.Text)
				}
			}
		case strings.HasPrefix(f.Name, "fleet-"):
			fleet, err := dstack.Read([]byte(f.Text))
			if err != nil {
				t.Fatal(err)
			}
			if n := len(fleet.Fleet.SSH.Hosts); n != map[string]int{"gpu-fast": 2, "all": 3}[fleet.Name()] {
				t.Errorf("%s has %d hosts", f.Name, n)
			}
		}
	}
	if got := strings.Join(names, " "); got != "config.yml policy.yml fleet-gpu-fast.dstack.yml fleet-all.dstack.yml" {
		t.Errorf("files %s", got)
	}
	for _, name := range []string{"SlurmctldPidFile=/run/slurmctld.pid", "NodeName=cloud[1-9]"} {
		found := false
		for _, n := range out.Notes {
			found = found || n.Name == name && n.Kind == NoEqual
		}
		if !found {
			t.Errorf("%s is not listed", name)
		}
	}
}

// TestSiteFaults: each fault of a slurm.conf has its line, and there is no output.
func TestSiteFaults(t *testing.T) {
	t.Parallel()
	text := "NodeName=a CPUs=many\nPartitionName=p Nodes=a MaxTime=x\n"
	c, err := conf.ReadFS(fstest.MapFS{"slurm.conf": {Data: []byte(text)}}, "slurm.conf")
	if err != nil {
		t.Fatal(err)
	}
	_, err = Site(c, Options{})
	if err == nil || !strings.Contains(err.Error(), "slurm.conf:1: CPUs=many") ||
		!strings.Contains(err.Error(), "slurm.conf:2: MaxTime=x") {
		t.Errorf("got %v", err)
	}
}
