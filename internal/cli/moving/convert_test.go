package moving

import (
	"os"
	"path/filepath"
	"testing"

	"bireme.dev/bireme/internal/cli/policyfile"
	"bireme.dev/bireme/internal/slurm/conf"
	"bireme.dev/bireme/internal/translate"
)

// TestPolicyIsRead: policy apply takes the policy that a slurm.conf becomes.
func TestPolicyIsRead(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "slurm.conf")
	text := "NodeName=a\nPartitionName=p Nodes=a AllowAccounts=physics,yes AllowQos=high,012\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := conf.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	out, err := translate.Site(c, translate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range out.Files {
		if f.Name != translate.PolicyFile {
			continue
		}
		p, err := policyfile.Parse(f.Name, []byte(f.Text))
		if err != nil {
			t.Fatalf("%v in\n%s", err, f.Text)
		}
		if len(p.Policy.Projects) != 2 || p.Policy.Projects[1].Name != "yes" || len(p.Policy.QOS) != 2 ||
			p.Policy.QOS[1].Name != "012" {
			t.Errorf("got %+v of\n%s", p.Policy, f.Text)
		}
		return
	}
	t.Error("there is no policy")
}

func TestFormOf(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ file, text, want string }{
		{"train.sbatch", "#!/bin/bash\n", formScript},
		{"-", "#!/bin/bash\n", formScript},
		{"run.sh", "echo\n", formScript},
		{"-", "type: task\n", formYAML},
		{".dstack.yml", "type: task\n", formYAML},
		{"slurm.conf", "ClusterName=x\n", formSite},
		{"site", "# a site\nNodeName=x\n", formSite},
	} {
		if got := formOf(tc.file, []byte(tc.text)); got != tc.want {
			t.Errorf("%s with %q is %s, want %s", tc.file, tc.text, got, tc.want)
		}
	}
}
