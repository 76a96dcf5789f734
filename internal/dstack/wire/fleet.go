package wire

import "encoding/json"

// Statuses of fleets and instances.
const (
	FleetActive      = "active"
	FleetTerminating = "terminating"

	InstancePending = "pending"
	InstanceIdle    = "idle"
	InstanceBusy    = "busy"
)

// Health of an instance.
const (
	Healthy       = "healthy"
	HealthWarning = "warning"
	HealthFailure = "failure"
)

// Remote is the backend of nodes that are not a cloud's, and their region.
const Remote = "remote"

// Fleet is a set of instances. Spec is what its maker sent, without keys.
type Fleet struct {
	ID            string          `json:"id"`
	Name          string          `json:"name"`
	ProjectName   string          `json:"project_name"`
	Spec          json.RawMessage `json:"spec"`
	CreatedAt     string          `json:"created_at"`
	Status        string          `json:"status"`
	StatusMessage *string         `json:"status_message"`
	Instances     []Instance      `json:"instances"`
}

// FleetSpec is what is sent to make a fleet.
type FleetSpec struct {
	Configuration     json.RawMessage `json:"configuration" in:"required"`
	ConfigurationPath *string         `json:"configuration_path"`
	Profile           json.RawMessage `json:"profile"`
	Autocreated       bool            `json:"autocreated"`
}

// FleetPlan is what applying a fleet would do.
type FleetPlan struct {
	ProjectName     string          `json:"project_name"`
	User            string          `json:"user"`
	Spec            json.RawMessage `json:"spec"`
	EffectiveSpec   json.RawMessage `json:"effective_spec"`
	CurrentResource *Fleet          `json:"current_resource"`
	Offers          []struct{}      `json:"offers"`
	TotalOffers     int             `json:"total_offers"`
	MaxOfferPrice   *float64        `json:"max_offer_price"`
	Action          string          `json:"action"` // create, update
}

// Instance is a node.
type Instance struct {
	ID                       string        `json:"id"`
	ProjectName              string        `json:"project_name"`
	Backend                  string        `json:"backend"`
	InstanceType             *InstanceType `json:"instance_type"`
	Name                     string        `json:"name"`
	FleetID                  string        `json:"fleet_id"`
	FleetName                string        `json:"fleet_name"`
	InstanceNum              int32         `json:"instance_num"`
	JobName                  *string       `json:"job_name"`
	Hostname                 *string       `json:"hostname"`
	Status                   string        `json:"status"`
	Unreachable              bool          `json:"unreachable"`
	HealthStatus             string        `json:"health_status"`
	TerminationReason        *string       `json:"termination_reason"`
	TerminationReasonMessage *string       `json:"termination_reason_message"`
	Created                  string        `json:"created"`
	FinishedAt               *string       `json:"finished_at"`
	Region                   string        `json:"region"`
	AvailabilityZone         *string       `json:"availability_zone"`
	Price                    float64       `json:"price"`
	TotalBlocks              int32         `json:"total_blocks"`
	BusyBlocks               int32         `json:"busy_blocks"`
	GPUDriver                *string       `json:"gpu_driver"`
}

// HealthChecks are the results of looking at an instance.
type HealthChecks struct {
	HealthChecks []HealthCheck `json:"health_checks"`
}

// HealthCheck is one look.
type HealthCheck struct {
	CollectedAt string        `json:"collected_at"`
	Status      string        `json:"status"`
	Events      []HealthEvent `json:"events"`
}

// HealthEvent is what was found.
type HealthEvent struct {
	Timestamp string `json:"timestamp"`
	Status    string `json:"status"`
	Message   string `json:"message"`
}
