package config

// Volume is `type: volume`. Which fields there are depends on the backend.
type Volume struct {
	Backend          string // aws, gcp, runpod, kubernetes, daytona, lium; empty: Class says what it is
	Name             *string
	AutoCleanup      *int64 // auto_cleanup_duration in seconds; below 0: off
	Tags             Tags
	Size             *Float // GB
	VolumeID         *string
	Region           string
	AvailabilityZone *string
	ClaimName        *string // of kubernetes, as the following
	StorageClassName *string
	AccessModes      []string
	ReadOnly         bool
	// Bireme's own form: a class of the settings in the place of a backend.
	Class  *string
	Node   *string
	Single bool // one job at a time has it
}

// Gateway is `type: gateway`.
type Gateway struct {
	Type         Kind                 `json:"type"`
	Name         *string              `json:"name"`
	Default      *bool                `json:"default,omitempty"`
	Backend      string               `json:"backend"`
	Region       string               `json:"region"`
	InstanceType *string              `json:"instance_type"`
	Domain       *string              `json:"domain"`
	PublicIP     bool                 `json:"public_ip"`
	LoadBalancer *GatewayLoadBalancer `json:"load_balancer,omitempty"`
	Certificate  *Certificate         `json:"certificate"`
	Replicas     *int                 `json:"replicas"`
	Tags         Tags                 `json:"tags"`
}

// GatewayLoadBalancer is what stands before a gateway's replicas.
type GatewayLoadBalancer struct {
	Type string `json:"type"` // alb
}

// Certificate is where a gateway's certificate comes from.
type Certificate struct {
	Type string `json:"type"`           // lets-encrypt, acm, gcp-cm
	ARN  string `json:"arn,omitempty"`  // of acm
	Name string `json:"name,omitempty"` // of gcp-cm
}

// Preset is `type: preset`, which only clients read.
type Preset struct {
	Type               Kind           `json:"type"`
	Name               *string        `json:"name"`
	Model              PresetModel    `json:"model"`
	Prompt             *PresetPrompt  `json:"prompt"`
	MinContextLength   *int           `json:"min_context_length"`
	MaxTTFT            *int           `json:"max_ttft"` // milliseconds
	Trials             *int           `json:"trials"`
	Concurrency        *int           `json:"concurrency"`
	Previous           []string       `json:"previous"`
	InputTokens        *int           `json:"input_tokens"`
	OutputTokens       *int           `json:"output_tokens"`
	SharedPrefixTokens *int           `json:"shared_prefix_tokens"`
	Dataset            *string        `json:"dataset"`
	Baseline           *bool          `json:"baseline"`
	Gateway            *GatewayChoice `json:"gateway"`
	Agent              *PresetAgent   `json:"agent"`
	Env                Env            `json:"env"`
	Policy
}

// PresetModel is the model of a preset: a repository, or a base of which a repository is to be found.
type PresetModel struct {
	Repo string  `json:"repo,omitempty"`
	Name *string `json:"name,omitempty"` // of Repo
	Base string  `json:"base,omitempty"`
}

// PresetPrompt is a text or the path of a file with it.
type PresetPrompt struct {
	Text string
	Path string
}

// PresetAgent is the program that searches for a preset.
type PresetAgent struct {
	Provider string  `json:"provider"` // claude, codex
	Model    *string `json:"model"`
	Effort   *string `json:"effort"` // low, medium, high, xhigh, max
}
