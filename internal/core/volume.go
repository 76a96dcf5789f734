package core

// Volume is a network volume of a project: storage that outlives the jobs that mount it. Where it lies, and how it is
// mounted, says its class in the settings.
type Volume struct {
	Project ProjectName `json:"project"`
	Name    string      `json:"name"`
	Class   string      `json:"class"`
	By      UserName    `json:"by,omitempty"` // who made it
	Created Time        `json:"created"`
	State   VolumeState `json:"state"`
	Message string      `json:"message,omitempty"` // why it failed, or is not deleted yet
	Size    Bytes       `json:"size,omitempty"`    // 0: not said, as of one that was there before
	Node    NodeName    `json:"node,omitempty"`    // makes it, or removes it
	Bound   bool        `json:"bound,omitempty"`   // it is on Node, and nowhere else
	// Path is that of one that was there before, below the path of its class; empty: it was made.
	Path     string            `json:"path,omitempty"`
	Single   bool              `json:"single,omitempty"` // one job at a time has it
	ReadOnly bool              `json:"read_only,omitempty"`
	Cleanup  Seconds           `json:"cleanup,omitempty"` // it is deleted when no job has had it for so long; 0: never
	Used     Time              `json:"used,omitempty"`    // when the last job left it
	Tags     map[string]string `json:"tags,omitempty"`
	Config   string            `json:"config,omitempty"` // the configuration that it was made from, as JSON
}

// VolumeState is how far a volume is.
type VolumeState string

// The states: submitted → active | failed; any → deleting → gone.
const (
	VolumeSubmitted VolumeState = "submitted" // its node is to make it
	VolumeActive    VolumeState = "active"
	VolumeFailed    VolumeState = "failed"
	VolumeDeleting  VolumeState = "deleting" // its node is to remove it
)

// VolumeKey identifies a volume.
type VolumeKey struct {
	Project ProjectName `json:"project"`
	Name    string      `json:"name"`
}

// Key identifies v.
func (v *Volume) Key() VolumeKey { return VolumeKey{v.Project, v.Name} }

// String is PROJECT/NAME.
func (k VolumeKey) String() string { return string(k.Project) + "/" + k.Name }

// VolumeMount is a volume as a job mounts it: in its container, or where its processes see it.
type VolumeMount struct {
	// Name is that of a volume of the job's project, with ${{ dstack.node_rank }} where each node has one of its own.
	Name   string   `json:"name"`
	Others []string `json:"others,omitempty"` // names of which the first that there is will do
	Target string   `json:"target"`
	Single bool     `json:"single,omitempty"` // set when the job is taken: nobody else may have it meanwhile
}
