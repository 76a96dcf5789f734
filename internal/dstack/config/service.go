package config

// Service is `type: service`.
type Service struct {
	Port        Port           `json:"port"`
	Gateway     *GatewayChoice `json:"gateway"`
	StripPrefix bool           `json:"strip_prefix"`
	Model       *Model         `json:"model"`
	HTTPS       *HTTPS         `json:"https"`
	Auth        bool           `json:"auth"`
	Scaling     *Scaling       `json:"scaling"`
	RateLimits  []RateLimit    `json:"rate_limits"`
	Probes      []Probe        `json:"probes"`           // nil: one by the model; empty: none
	Replicas    *Range         `json:"replicas"`         // nil: 1, or Groups
	Groups      []ReplicaGroup `json:"groups,omitempty"` // nil: one group of Replicas
	Commands    []string       `json:"commands"`
	Run
	Policy
}

// GatewayChoice is true, false or a gateway's name.
type GatewayChoice struct {
	Use bool // of the short form; false: the server's own proxy
	Ref *Ref
}

// HTTPS is true, false or auto.
type HTTPS struct {
	On   bool
	Auto bool
}

// Model is the language model that a service offers.
type Model struct {
	Type         string // chat
	Name         string
	Format       string  // openai, tgi
	Prefix       string  // of openai
	ChatTemplate *string // of tgi
	EOSToken     *string // of tgi
}

// Scaling is how a service's replicas follow its load.
type Scaling struct {
	Metric         string `json:"metric"` // rps
	Target         Float  `json:"target"`
	Window         *int64 `json:"window"` // seconds
	ScaleUpDelay   int64  `json:"scale_up_delay"`
	ScaleDownDelay int64  `json:"scale_down_delay"`
}

// RateLimit bounds the requests below a path.
type RateLimit struct {
	Prefix string       `json:"prefix"`
	Key    PartitionKey `json:"key"`
	RPS    Float        `json:"rps"`
	Burst  int64        `json:"burst"`
}

// PartitionKey is by what requests are told apart.
type PartitionKey struct {
	Type   string `json:"type"` // ip_address, header
	Header string `json:"header,omitempty"`
}

// Probe is a health check of a service.
type Probe struct {
	Type       string   `json:"type"` // http
	URL        *string  `json:"url"`
	Method     *string  `json:"method"`
	Headers    []Header `json:"headers"`
	Body       *string  `json:"body"`
	Timeout    *int64   `json:"timeout"`  // seconds
	Interval   *int64   `json:"interval"` // seconds
	ReadyAfter *int     `json:"ready_after"`
	UntilReady *bool    `json:"until_ready"`
}

// Header is an HTTP header of a probe.
type Header struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// ReplicaGroup is a group of equal replicas of a service.
type ReplicaGroup struct {
	Name        string    `json:"name"`
	Replicas    Range     `json:"replicas"`
	Scaling     *Scaling  `json:"scaling"`
	Resources   Resources `json:"resources"`
	SpotPolicy  *string   `json:"spot_policy"`
	Reservation *string   `json:"reservation"`
	Commands    []string  `json:"commands"`
	Image       *string   `json:"image"`
	Python      *string   `json:"python"`
	NVCC        *bool     `json:"nvcc"`
	Docker      *bool     `json:"docker"`
	Privileged  *bool     `json:"privileged"`
	Router      *Router   `json:"router"`
}

// Router makes a group the one that spreads requests over the others.
type Router struct {
	Type string `json:"type"` // sglang (in files also smg), dynamo
}
