package server_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/server/servertest"
	"bireme.dev/bireme/internal/wire"
)

// TestLogsOfEndedRunsGoOn: an agent that comes back with the end of a run is told how far the store has its output, and
// the rest is taken, also when the job has another attempt by then.
func TestLogsOfEndedRunsGoOn(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t)
	n := s.Join("n1", core.Compute, false)
	n.Connect()
	for _, requeue := range []bool{false, true} {
		id := s.Submit(func(in *client.Submit) { in.Spec.IO.Stream, in.Spec.Requeue = true, true })
		k := n.AwaitLaunch(id, 1, wire.BatchStep)
		n.Send(wire.TypeLogChunk, wire.LogChunk{Key: k}, []byte("line 1\n"))
		n.AwaitLogAck(k, 7)
		if requeue {
			s.Must("PATCH", "/api/v1/jobs/"+idText(id), client.Update{Requeue: true}, nil)
			n.AwaitKill(k)
			n.End(k, func(x *wire.Exited) { x.LogSize, x.Signal = 11, 15 })
			n.AwaitAck(k)
			n.AwaitLaunch(id, 2, wire.BatchStep)
			n.Disconnect()
			n.Holds(wire.Exited{Key: k, LogSize: 11, Signal: 15, JobDone: true})
		} else {
			n.Disconnect()
			n.End(k, func(x *wire.Exited) { x.LogSize = 11 })
		}
		n.Connect()
		if w := n.Welcome(); !slices.ContainsFunc(w.Logs, func(l wire.LogAck) bool {
			return l.Key.Job == core.JobID(id) && l.Key.Attempt == 1 && l.Offset == 7
		}) {
			t.Errorf("requeue %v: the agent is not told how far the log is: %+v", requeue, w.Logs)
		}
		n.Send(wire.TypeLogChunk, wire.LogChunk{Key: k, Offset: 7, End: true}, []byte("end\n"))
		n.AwaitLogAck(k, 11)
		path := filepath.Join(s.Dir, "logs", "0", idText(id)+".1.log")
		if got, err := os.ReadFile(path); err != nil || string(got) != "line 1\nend\n" {
			t.Errorf("requeue %v: the output is %q, %v", requeue, got, err)
		}
	}
}
