package server_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/server/servertest"
	"bireme.dev/bireme/internal/wire"
)

// TestCompletedFile: a job that ends gets its line in the form of Slurm 22.05.8's jobcomp/filetxt.
func TestCompletedFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "jobcomp.txt")
	s := servertest.Start(t, "accounting.completed_file="+file)
	n := s.Join("n1", core.Compute, false)
	n.Connect()
	await := func(want string) {
		t.Helper()
		re := regexp.MustCompile(want)
		var text []byte
		for end := time.Now().Add(servertest.Timeout); time.Now().Before(end); <-time.After(time.Millisecond) {
			if text, _ = os.ReadFile(file); re.Match(text) {
				return
			}
		}
		t.Fatalf("%s does not match:\n%s", want, text)
	}
	const at = `\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d`
	id := s.Submit(func(in *client.Submit) {
		in.Spec.Name, in.Spec.TimeLimit = "x y", 90
		in.Spec.Extra = &core.Extra{WCKey: "w"}
	})
	n.End(n.AwaitLaunch(id, 1, wire.BatchStep), func(x *wire.Exited) { x.ExitCode = 2 })
	await(`^JobId=1 UserId=\S+\(\d+\) GroupId=\S+\(\d+\) Name=x y JobState=FAILED Partition=\S+ TimeLimit=2 ` +
		`StartTime=` + at + ` EndTime=` + at + ` NodeList=n1 NodeCnt=1 ProcCnt=1 WorkDir=\S* ReservationName= ` +
		`Tres=cpu=1\S*,node=1,billing=1 Account=\S+ QOS=\S* WcKey=w Cluster=\S+ SubmitTime=` + at + ` EligibleTime=` + at +
		` DerivedExitCode=0:0 ExitCode=2:0 \n`)
	id = s.Submit(func(in *client.Submit) { in.Spec.Name, in.Spec.Array = "arr", "7" })
	n.End(n.AwaitLaunch(id, 1, wire.BatchStep), nil)
	await(`\nJobId=2 .* Name=arr JobState=COMPLETED .* ArrayJobId=2 ArrayTaskId=7 DerivedExitCode=0:0 ExitCode=0:0 \n$`)
}
