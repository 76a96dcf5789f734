package report

import (
	"fmt"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/hostlist"
	"bireme.dev/bireme/internal/core/plain"
)

// Completed is a job that has ended, with what its line of jobcomp/filetxt says beside the record.
type Completed struct {
	Job                  *client.Job
	User, Group, Cluster string
	Derived              core.Exit
}

// Line is that line, as Slurm 22.05.8 writes it; it ends with a blank.
func (c *Completed) Line() string {
	j := c.Job
	s, more := j.Spec, j.Spec.More()
	var names []string
	var z size
	part, tres, extra, limit := s.Partition.String(), "", "", "Partition_Limit"
	if a := j.Alloc; a != nil {
		part = string(a.Partition)
		for i := range a.Nodes {
			names = append(names, string(a.Nodes[i].Node))
		}
		z = billed(j)
		tres = z.tres(false)
	}
	switch t := s.TimeLimit; {
	case t == core.Forever:
		limit = "UNLIMITED"
	case t > 0:
		limit = fmt.Sprint((t + 59) / 60)
	}
	if a := j.Array; a != nil {
		extra = fmt.Sprintf(" ArrayJobId=%d ArrayTaskId=%d", a.Base, a.Task)
	} else if h := more.Het; h != nil {
		extra = fmt.Sprintf(" HetJobId=%d HetJobOffset=%d", h.Lead, h.Offset)
	}
	return fmt.Sprintf("JobId=%d UserId=%s(%d) GroupId=%s(%d) Name=%s JobState=%s Partition=%s TimeLimit=%s StartTime=%s "+
		"EndTime=%s NodeList=%s NodeCnt=%d ProcCnt=%d WorkDir=%s ReservationName=%s Tres=%s Account=%s QOS=%s WcKey=%s "+
		"Cluster=%s SubmitTime=%s EligibleTime=%s%s DerivedExitCode=%s ExitCode=%s ",
		j.ID, c.User, s.UID, c.Group, s.GID, plain.Cell(s.Name), j.State, part, limit, TimeText(j.Start, "Unknown"),
		TimeText(j.End, "Unknown"), hostlist.Fold(names), len(names), z.cpus, plain.Cell(s.IO.WorkDir), more.Reservation,
		tres, s.Project, s.QOS, plain.Cell(more.WCKey), c.Cluster, TimeText(j.Submit, "Unknown"),
		TimeText(j.Eligible, "Unknown"), extra, exitText(c.Derived), exitText(j.Exit))
}
