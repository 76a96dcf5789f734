package config

// Fleet is `type: fleet`: machines of backends (Nodes) or hosts reached by SSH (SSH).
type Fleet struct {
	Type              Kind          `json:"type"`
	Name              *string       `json:"name"`
	Placement         *string       `json:"placement"` // any, cluster
	Blocks            Blocks        `json:"blocks"`
	Nodes             *FleetNodes   `json:"nodes"`
	Reservation       *string       `json:"reservation"`
	Resources         *Resources    `json:"resources"`
	Backends          []string      `json:"backends"`
	Regions           []string      `json:"regions"`
	AvailabilityZones []string      `json:"availability_zones"`
	InstanceTypes     []string      `json:"instance_types"`
	SpotPolicy        *string       `json:"spot_policy"`
	Retry             *Retry        `json:"retry"`
	MaxPrice          *Float        `json:"max_price"`
	IdleDuration      *int64        `json:"idle_duration"`
	Tags              Tags          `json:"tags"`
	BackendOptions    []VastOptions `json:"backend_options"`
	SSH               *SSHConfig    `json:"ssh_config"`
	Env               Env           `json:"env"`
}

// Blocks is into how many parts a host is divided: a number, or auto for as many as it has GPUs (or CPUs).
type Blocks struct {
	Auto  bool
	Count int
}

// FleetNodes is how many machines a fleet has.
type FleetNodes struct {
	Min    int  `json:"min"`
	Target int  `json:"target"` // left out of the normal form where it is Min
	Max    *int `json:"max"`
}

// SSHConfig is the hosts of a fleet and how to reach them.
type SSHConfig struct {
	User         *string   `json:"user"`
	Port         *int      `json:"port"`
	IdentityFile *string   `json:"identity_file"`
	SSHKey       *SSHKey   `json:"ssh_key"`
	ProxyJump    *SSHProxy `json:"proxy_jump"`
	Hosts        []SSHHost `json:"hosts"`
	Network      *string   `json:"network"` // CIDR
}

// SSHHost is one host. What it leaves out is as in the fleet.
type SSHHost struct {
	Hostname     string    `json:"hostname"`
	Port         *int      `json:"port"`
	User         *string   `json:"user"`
	IdentityFile *string   `json:"identity_file"`
	ProxyJump    *SSHProxy `json:"proxy_jump"`
	InternalIP   *string   `json:"internal_ip"`
	SSHKey       *SSHKey   `json:"ssh_key"`
	Blocks       *Blocks   `json:"blocks"`
	Short        bool      `json:"-"` // written as its name alone, which the normal form keeps
}

// SSHProxy is a host on the way.
type SSHProxy struct {
	Hostname     string  `json:"hostname"`
	Port         *int    `json:"port"`
	User         string  `json:"user"`
	IdentityFile string  `json:"identity_file"`
	SSHKey       *SSHKey `json:"ssh_key"`
}

// SSHKey is a key pair in OpenSSH's formats.
type SSHKey struct {
	Public  string  `json:"public"`
	Private *string `json:"private"`
}

// String keeps the private part out of messages.
func (k SSHKey) String() string { return k.Public }

// GoString is String for %#v.
func (k SSHKey) GoString() string { return k.Public }
