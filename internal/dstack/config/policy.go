package config

import "reflect"

// Policy is what a run configuration, a preset and a profile share. A value that is not nil in the configuration
// overrides the profile's.
type Policy struct {
	Backends          []string           `json:"backends"`
	Regions           []string           `json:"regions"`
	AvailabilityZones []string           `json:"availability_zones"`
	InstanceTypes     []string           `json:"instance_types"`
	Reservation       *string            `json:"reservation"`
	SpotPolicy        *string            `json:"spot_policy"` // spot, on-demand, auto
	Retry             *Retry             `json:"retry"`
	MaxDuration       *Limit             `json:"max_duration"`
	StopDuration      *Limit             `json:"stop_duration"`
	MaxPrice          *Float             `json:"max_price"`       // dollars an hour
	CreationPolicy    *string            `json:"creation_policy"` // reuse, reuse-or-create
	IdleDuration      *int64             `json:"idle_duration"`   // seconds; below 0: off
	UtilizationPolicy *UtilizationPolicy `json:"utilization_policy"`
	StartupOrder      *string            `json:"startup_order"` // any, master-first, workers-first
	StopCriteria      *string            `json:"stop_criteria"` // all-done, master-done
	Schedule          *Schedule          `json:"schedule"`
	Fleets            []Ref              `json:"fleets"`
	Instances         []InstanceSelector `json:"instances"`
	Tags              Tags               `json:"tags"`
	BackendOptions    []VastOptions      `json:"backend_options"`
}

// Profile is an entry of profiles.yml, and what a client sends beside a configuration.
type Profile struct {
	Policy
	Name    string `json:"name"`
	Default bool   `json:"default"`
}

// IsEmpty reports whether a profile asks for nothing; none does not. Clients send one without a word in it, under some
// name, where there is none.
func (p *Profile) IsEmpty() bool { return p == nil || reflect.DeepEqual(p.Policy, Policy{}) }

// Profiles is the file profiles.yml.
type Profiles struct {
	Profiles []Profile `json:"profiles"`
}

// The events of a retry.
const (
	RetryNoCapacity   = "no-capacity"
	RetryInterruption = "interruption"
	RetryError        = "error"
)

// RetryHour is how long a retry without a duration goes on, in seconds.
const RetryHour int64 = 3600

// Retry is true, false, or a mapping.
type Retry struct {
	On       bool     // of the short form
	Mapping  bool     // the long form was written; Events and Duration are its
	Events   []string // nil: all
	Duration *int64   // seconds; nil: RetryHour
}

// Acts lists the events that start a run again, and for how long in seconds. None: it never does.
func (r *Retry) Acts() (events []string, seconds int64) {
	if r == nil || !r.Mapping && !r.On {
		return nil, 0
	}
	events, seconds = r.Events, RetryHour
	if events == nil {
		events = []string{RetryNoCapacity, RetryInterruption, RetryError}
	}
	if r.Duration != nil {
		seconds = *r.Duration
	}
	return events, seconds
}

// Limit is a duration that may be off.
type Limit struct {
	Off     bool
	Seconds int64
}

// UtilizationPolicy ends a run whose GPUs are idle.
type UtilizationPolicy struct {
	MinGPUUtilization int   `json:"min_gpu_utilization"` // percent
	TimeWindow        int64 `json:"time_window"`         // seconds
}

// Schedule is when a run starts again: crontab lines in UTC, weekday 0 is Monday.
type Schedule struct {
	Cron []string `json:"cron"`
}

// Ref names a fleet or a gateway.
type Ref struct {
	Project *string `json:"project"` // nil: the run's own
	Name    string  `json:"name"`
}

// String is the short form, [PROJECT/]NAME.
func (r Ref) String() string {
	if r.Project == nil {
		return r.Name
	}
	return *r.Project + "/" + r.Name
}

// InstanceSelector names an instance: by its name, by its host's name or address, or by its number in a fleet. One of
// the three is set.
type InstanceSelector struct {
	Name     string
	Hostname string
	Fleet    *Ref
	Instance int // of Fleet
}

// VastOptions are the options of the backend vastai.
type VastOptions struct {
	Type           string  `json:"type"`
	OfferOrder     *string `json:"offer_order"` // score, price
	MinReliability *Float  `json:"min_reliability"`
	MinScore       *int    `json:"min_score"`
}
