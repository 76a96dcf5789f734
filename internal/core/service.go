package core

import "slices"

// Service is what a run of replicas behind one address has beside its jobs. Each replica is a job of the run. It is
// durable; what changes with every request (statistics, results of probes) is kept outside.
type Service struct {
	Open       bool          `json:"open,omitempty"`        // no token is asked for
	KeepPrefix bool          `json:"keep_prefix,omitempty"` // replicas see the path of the proxy before their own
	Model      *ServiceModel `json:"model,omitempty"`
	RateLimits []RateLimit   `json:"rate_limits,omitempty"`

	Groups []ServiceGroup `json:"groups"`
	// Versions are those that replicas have or that an update may go back to, oldest first. The last one is what the
	// service is to become.
	Versions []ServiceVersion `json:"versions"`
	Replicas []Replica        `json:"replicas,omitempty"` // by number
	Next     int32            `json:"next,omitempty"`     // number of the next replica
	Stop     *Stop            `json:"stop,omitempty"`     // somebody, or a replica's failure, ends the run
	// Drain is how long a replica that is to end has for the requests that it has.
	Drain Seconds `json:"drain,omitempty"`
	// UnixGroups are those of the user, for partitions that ask for them.
	UnixGroups []string `json:"unix_groups,omitempty"`
	// Message tells what went wrong last and was answered without ending the run: a replica that failed, an update that
	// was taken back.
	Message string `json:"message,omitempty"`
}

// ServiceGroup is a number of equal replicas.
type ServiceGroup struct {
	Name    string          `json:"name,omitempty"`
	Min     int32           `json:"min"`
	Max     int32           `json:"max"`
	Want    int32           `json:"want"` // replicas that there should be now, from Min to Max
	Scaling *ServiceScaling `json:"scaling,omitempty"`
	Scaled  Time            `json:"scaled,omitempty"` // when Want was last changed by the load
	Why     string          `json:"why,omitempty"`    // and why
	// Of the present series of replicas that failed: how many, and when the next one may be started.
	Failures int32 `json:"failures,omitempty"`
	RetryAt  Time  `json:"retry_at,omitempty"`
}

// ServiceScaling says how the number of replicas follows the load.
type ServiceScaling struct {
	Metric    ScalingMetric `json:"metric"`
	Target    float64       `json:"target"` // of the metric, for each replica
	Window    Seconds       `json:"window"`
	UpDelay   Seconds       `json:"up_delay"`
	DownDelay Seconds       `json:"down_delay"`
}

// ScalingMetric is what a service is scaled by.
type ScalingMetric string

// The metrics. All but the first are additions to dstack's.
const (
	ScaleRPS     ScalingMetric = "rps"     // requests a second
	ScaleQueue   ScalingMetric = "queue"   // requests that are being answered or held
	ScaleLatency ScalingMetric = "latency" // 95th percentile, in seconds: of the service, not of each replica
	ScaleGPU     ScalingMetric = "gpu"     // utilization in percent, the mean of the replicas' GPUs
)

// ServiceVersion is one deployment of a service.
type ServiceVersion struct {
	Num    int32   `json:"num"` // dstack's deployment_num
	Port   int32   `json:"port"`
	Probes []Probe `json:"probes,omitempty"`
	Config Hash    `json:"config,omitzero"` // the run's description
	// Specs are those of a replica's job, by group.
	Specs []*Spec `json:"specs,omitempty"`
}

// Replica is a job of a service that has not ended.
type Replica struct {
	Num     int32 `json:"num"`
	Group   int32 `json:"group,omitempty"`
	Version int32 `json:"version"`
	Job     JobID `json:"job"`
	// ReadyIn is the attempt of the job in which requests are sent to it; 0: none yet, or no longer.
	ReadyIn int32 `json:"ready_in,omitempty"`
	Was     bool  `json:"was,omitempty"` // it has been ready
	// Draining is since when it gets no new requests, because it is to end; 0: it is not.
	Draining Time `json:"draining,omitempty"`
	Stopped  bool `json:"stopped,omitempty"` // its job was told to end
	// Message is why it is not ready.
	Message string `json:"message,omitempty"`
}

// ServiceModel is the language model that a service offers.
type ServiceModel struct {
	Name     string `json:"name"`
	Format   string `json:"format"`             // openai, tgi
	Prefix   string `json:"prefix,omitempty"`   // of openai, such as /v1
	Template string `json:"template,omitempty"` // of tgi: chat_template
	EOS      string `json:"eos,omitempty"`      // of tgi: eos_token
}

// RateLimit bounds the requests below a path, for each client.
type RateLimit struct {
	Prefix string  `json:"prefix"`
	Header string  `json:"header,omitempty"` // clients are told apart by its value; empty: by their address
	RPS    float64 `json:"rps"`
	Burst  int64   `json:"burst,omitempty"`
}

// Probe is an HTTP request by which a replica is found ready.
type Probe struct {
	URL        string        `json:"url"`
	Method     string        `json:"method"` // upper case
	Headers    []ProbeHeader `json:"headers,omitempty"`
	Body       string        `json:"body,omitempty"`
	Timeout    Seconds       `json:"timeout"`
	Interval   Seconds       `json:"interval"`
	ReadyAfter int32         `json:"ready_after"` // successes in a row
	UntilReady bool          `json:"until_ready,omitempty"`
}

// ProbeHeader is a header of a probe.
type ProbeHeader struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Current is the version that the service is to have.
func (s *Service) Current() *ServiceVersion { return &s.Versions[len(s.Versions)-1] }

// Version finds a version by its number; nil: there is none.
func (s *Service) Version(num int32) *ServiceVersion {
	for i := range s.Versions {
		if s.Versions[i].Num == num {
			return &s.Versions[i]
		}
	}
	return nil
}

// ReplicaOf finds the replica that is a job.
func (s *Service) ReplicaOf(id JobID) *Replica {
	for i := range s.Replicas {
		if s.Replicas[i].Job == id {
			return &s.Replicas[i]
		}
	}
	return nil
}

// IsReady reports whether a replica whose job has this record takes requests.
func (r *Replica) IsReady(j *Job) bool {
	return r.Draining == 0 && j != nil && j.State == Running && !j.Flags.Has(Requeueing) && r.ReadyIn != 0 &&
		r.ReadyIn == j.Attempt
}

// Want is how many replicas there should be.
func (s *Service) Want() (n int32) {
	for i := range s.Groups {
		n += s.Groups[i].Want
	}
	return n
}

// Clone is a copy whose groups, versions and replicas may be changed.
func (s *Service) Clone() *Service {
	next := *s
	next.Groups, next.Versions = slices.Clone(s.Groups), slices.Clone(s.Versions)
	next.Replicas = slices.Clone(s.Replicas)
	return &next
}
