package wire

import (
	"encoding/json"
	"strings"
)

// The statuses of a run.
const (
	RunPending      = "pending"
	RunSubmitted    = "submitted"
	RunProvisioning = "provisioning"
	RunRunning      = "running"
	RunTerminating  = "terminating"
	RunTerminated   = "terminated"
	RunFailed       = "failed"
	RunDone         = "done"
)

// Run is a run with its jobs.
type Run struct {
	ID                  string          `json:"id"`
	ProjectName         string          `json:"project_name"`
	User                string          `json:"user"`
	Fleet               *NamedID        `json:"fleet"`
	SubmittedAt         string          `json:"submitted_at"`
	LastProcessedAt     string          `json:"last_processed_at"`
	Status              string          `json:"status"`
	StatusMessage       string          `json:"status_message"`
	TerminationReason   *string         `json:"termination_reason"`
	RunSpec             json.RawMessage `json:"run_spec"`
	Jobs                []Job           `json:"jobs"`
	LatestJobSubmission *JobSubmission  `json:"latest_job_submission"`
	Cost                Dollars         `json:"cost"`
	Service             *Service        `json:"service"`
	DeploymentNum       int32           `json:"deployment_num"`
	Error               *string         `json:"error"`
	Deleted             bool            `json:"deleted"`
	NextTriggeredAt     *string         `json:"next_triggered_at"`
	// BiremeJob is an addition: the number by which Slurm's commands know the run.
	BiremeJob int64 `json:"bireme_job,omitempty"`
}

// NamedID is a thing by its id and name.
type NamedID struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// Dollars is an amount of money, written with a point.
type Dollars float64

// MarshalJSON writes 0.0 where others write 0.
func (d Dollars) MarshalJSON() ([]byte, error) {
	if d == 0 {
		return []byte("0.0"), nil
	}
	return json.Marshal(float64(d))
}

// RunID is the id that clients see of a run. Ids that are a random UUID without dashes are shown as they are, so that a
// run is found by it; others are derived.
func RunID(id string) string {
	if len(id) != 32 || id[12] != '4' || !strings.Contains("89ab", id[16:17]) {
		return UUID(KindRun, id)
	}
	text := id[:8] + "-" + id[8:12] + "-" + id[12:16] + "-" + id[16:20] + "-" + id[20:]
	if !IsUUID(text) {
		return UUID(KindRun, id)
	}
	return text
}

// RunKey is the id under which a run with a RunID is stored, if its id is one that is not derived.
func RunKey(uuid string) string { return strings.ToLower(strings.ReplaceAll(uuid, "-", "")) }
