package wire

import "encoding/json"

// What applying a plan does.
const (
	ActionCreate = "create"
	ActionUpdate = "update"
)

// RunPlan is what applying a run would do, and where it could run.
type RunPlan struct {
	ProjectName      string          `json:"project_name"`
	User             string          `json:"user"`
	RunSpec          json.RawMessage `json:"run_spec"`
	EffectiveRunSpec json.RawMessage `json:"effective_run_spec"`
	JobPlans         []JobPlan       `json:"job_plans"`
	CurrentResource  *Run            `json:"current_resource"`
	Action           string          `json:"action"`
}

// JobPlan is where one job could run.
type JobPlan struct {
	JobSpec     *JobSpec `json:"job_spec"`
	Offers      []Offer  `json:"offers"`
	TotalOffers int      `json:"total_offers"`
	MaxPrice    *Dollars `json:"max_price"`
}

// Where an offer comes from, and what it is called there.
const (
	BackendRemote = "remote" // clients show it as ssh
	RegionRemote  = "remote"
)

// The availabilities of an offer.
const (
	OfferIdle         = "idle"
	OfferBusy         = "busy"
	OfferAvailable    = "available"     // it is made when it is needed
	OfferNotAvailable = "not_available" // it takes no jobs now
)

// Offer is an instance, or blocks of one, that could run a job.
type Offer struct {
	Backend           string       `json:"backend"`
	Instance          InstanceType `json:"instance"`
	Region            string       `json:"region"`
	Price             Dollars      `json:"price"`
	BackendData       struct{}     `json:"backend_data"`
	Availability      string       `json:"availability"`
	AvailabilityZones []string     `json:"availability_zones"`
	InstanceRuntime   string       `json:"instance_runtime"`
	Blocks            int32        `json:"blocks"`
	TotalBlocks       int32        `json:"total_blocks"`
	// Node is an addition: the node that the instance is.
	Node string `json:"bireme_node,omitempty"`
}

// GpuGroup is offers with the same GPU.
type GpuGroup struct {
	Name         string    `json:"name"`
	MemoryMiB    int64     `json:"memory_mib"`
	Vendor       string    `json:"vendor"`
	Availability []string  `json:"availability"`
	Spot         []string  `json:"spot"`
	Count        IntRange  `json:"count"`
	Price        CostRange `json:"price"`
	OfferPrice   CostRange `json:"offer_price"`
	Backends     []string  `json:"backends,omitempty"`
	Backend      string    `json:"backend,omitempty"`
	Regions      []string  `json:"regions,omitempty"`
	Region       string    `json:"region,omitempty"`
}

// CpuGroup is offers without GPUs.
type CpuGroup struct {
	CPUArch      []string  `json:"cpu_arch"`
	Count        IntRange  `json:"count"`
	MemoryMiB    IntRange  `json:"memory_mib"`
	Price        CostRange `json:"price"`
	Availability []string  `json:"availability"`
	Spot         []string  `json:"spot"`
	Backends     []string  `json:"backends,omitempty"`
	Backend      string    `json:"backend,omitempty"`
	Regions      []string  `json:"regions,omitempty"`
	Region       string    `json:"region,omitempty"`
}

// IntRange is a range of counts.
type IntRange struct {
	Min int64 `json:"min"`
	Max int64 `json:"max"`
}

// CostRange is a range of prices.
type CostRange struct {
	Min Dollars `json:"min"`
	Max Dollars `json:"max"`
}

// GpuList answers the question which GPUs there are.
type GpuList struct {
	GPUs []GpuGroup `json:"gpus"`
	CPUs []CpuGroup `json:"cpus,omitempty"`
}

// RunSpec is a run as its client describes it. The configuration and the profile are read by package config.
type RunSpec struct {
	RunName           *string             `json:"run_name"`
	RepoID            *string             `json:"repo_id"`
	RepoData          json.RawMessage     `json:"repo_data"`
	RepoCodeHash      *string             `json:"repo_code_hash"`
	RepoDir           *string             `json:"repo_dir"`
	FileArchives      []FileArchiveTarget `json:"file_archives" in:"max=1000"`
	WorkingDir        *string             `json:"working_dir"`
	ConfigurationPath *string             `json:"configuration_path"`
	Configuration     json.RawMessage     `json:"configuration" in:"required"`
	Profile           json.RawMessage     `json:"profile"`
	SSHKeyPub         *string             `json:"ssh_key_pub"`
}
