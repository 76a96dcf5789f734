package state

import (
	"encoding/json"
	"strings"
	"testing"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/coretest"
)

// A recording holds nothing of what a job was called with, in no kind of input and in no state that is loaded.
func TestRecordingsHoldNoSecrets(t *testing.T) {
	t.Parallel()
	const secret = "MARK-secret"
	spec := coretest.Job().Set(func(s *core.Spec) {
		s.From.Line, s.Args = "sbatch --export=FOO="+secret, []string{"--password", secret}
		s.Extra = &core.Extra{
			Export: "FOO=" + secret, MailUser: secret,
			Kept: &core.KeptOptions{
				Schedule: "0 * * * *", Slurm: map[string]string{"scrontab": "0 * * * * curl -H " + secret},
			},
			Container: &core.Container{Image: "box", Entry: []string{secret}},
		}
	}).Spec()
	submit := &Submit{
		Spec: spec, Components: []*core.Spec{spec}, Script: []byte(secret), Env: []byte("A=" + secret + "\x00"),
		Ended: []*core.Job{{ID: 1, Spec: spec}},
	}
	fleet := &core.Fleet{Name: "lab", Env: core.FleetEnv{Sealed: secret}, Keys: []core.FleetKey{{Sealed: secret}}}
	load := RecordLoad(Config{}, &Image{Jobs: []*core.Job{{ID: 1, Spec: spec}}, Fleets: []*core.Fleet{fleet}})
	for what, x := range map[string]any{
		"submit": redacted(submit), "try": redacted(&Try{Submit: *submit}), "load": load,
		"update": redacted(&UpdateJob{Ended: submit.Ended}), "requeue": redacted(&Requeue{Ended: submit.Ended[0]}),
		"fleet": redacted(&PutFleet{Fleet: fleet}),
	} {
		b, err := json.Marshal(x)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(b), secret) {
			t.Errorf("%s: %s", what, b)
		}
	}
	if s := redacted(submit).(*Submit).Spec; !s.Recurs() || s.Extra.Container.Image != "box" {
		t.Errorf("what is decided by is gone: %+v", s.Extra)
	}
	if spec.From.Line == "" || spec.Extra.SlurmOption("scrontab") == "" || spec.Extra.Container.Entry == nil {
		t.Error("the input itself was changed")
	}
}
