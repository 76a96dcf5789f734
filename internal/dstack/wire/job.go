package wire

import "encoding/json"

// The statuses of a job.
const (
	JobSubmitted    = "submitted"
	JobProvisioning = "provisioning"
	JobPulling      = "pulling"
	JobRunning      = "running"
	JobTerminating  = "terminating"
	JobTerminated   = "terminated"
	JobAborted      = "aborted"
	JobFailed       = "failed"
	JobDone         = "done"
)

// Job is one node's part of a run, with its attempts, oldest first.
type Job struct {
	Spec           *JobSpec        `json:"job_spec"`
	Submissions    []JobSubmission `json:"job_submissions"`
	ConnectionInfo *ConnectionInfo `json:"job_connection_info"`
}

// JobSpec is what a job is to do and what it asks for.
type JobSpec struct {
	ReplicaNum        int                 `json:"replica_num"`
	JobNum            int                 `json:"job_num"`
	JobName           string              `json:"job_name"`
	JobsPerReplica    int                 `json:"jobs_per_replica"`
	ReplicaGroup      string              `json:"replica_group"`
	AppSpecs          []AppSpec           `json:"app_specs"`
	User              *UnixUser           `json:"user"`
	Commands          []string            `json:"commands"`
	Env               json.RawMessage     `json:"env"`
	HomeDir           string              `json:"home_dir"`
	ImageName         string              `json:"image_name"`
	Privileged        bool                `json:"privileged"`
	SingleBranch      bool                `json:"single_branch"`
	MaxDuration       *int64              `json:"max_duration"`
	StopDuration      *int64              `json:"stop_duration"`
	UtilizationPolicy any                 `json:"utilization_policy"`
	RegistryAuth      any                 `json:"registry_auth"`
	Requirements      Requirements        `json:"requirements"`
	Retry             *Retry              `json:"retry"`
	Volumes           any                 `json:"volumes"`
	SSHKey            any                 `json:"ssh_key"`
	WorkingDir        *string             `json:"working_dir"`
	RepoData          json.RawMessage     `json:"repo_data"`
	RepoCodeHash      *string             `json:"repo_code_hash"`
	RepoDir           string              `json:"repo_dir"`
	RepoExistsAction  *string             `json:"repo_exists_action"`
	FileArchives      []FileArchiveTarget `json:"file_archives"`
	ServicePort       *int                `json:"service_port"`
	Probes            []ProbeSpec         `json:"probes"`
	NodeGroupIndex    int                 `json:"node_group_index"`
	NodeGroupName     string              `json:"node_group_name"`
	NodeGroupJobIndex int                 `json:"node_group_job_index"`
}

// ProbeSpec is a probe with its defaults.
type ProbeSpec struct {
	Type       string        `json:"type"`
	URL        string        `json:"url"`
	Method     string        `json:"method"`
	Headers    []ProbeHeader `json:"headers"`
	Body       *string       `json:"body"`
	Timeout    int64         `json:"timeout"`
	Interval   int64         `json:"interval"`
	ReadyAfter int32         `json:"ready_after"`
	UntilReady bool          `json:"until_ready"`
}

// ProbeHeader is a header of a probe.
type ProbeHeader struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// ProbeState is how a replica does with a probe.
type ProbeState struct {
	SuccessStreak int32 `json:"success_streak"`
}

// Service is where a service is found.
type Service struct {
	URL     string        `json:"url"`
	Model   *ServiceModel `json:"model"`
	Options struct{}      `json:"options"`
}

// ServiceModel is where a service's model is found.
type ServiceModel struct {
	Name    string `json:"name"`
	BaseURL string `json:"base_url"`
	Type    string `json:"type"`
}

// AppSpec is a port of a job that a client forwards.
type AppSpec struct {
	Port           int     `json:"port"`
	MapToPort      *int    `json:"map_to_port"`
	AppName        string  `json:"app_name"`
	URLPath        *string `json:"url_path"`
	URLQueryParams any     `json:"url_query_params"`
}

// UnixUser is a user inside a container.
type UnixUser struct {
	UID       *int64  `json:"uid"`
	GID       *int64  `json:"gid"`
	Username  *string `json:"username"`
	Groupname *string `json:"groupname"`
}

// Requirements are what an instance must have for a job.
type Requirements struct {
	Resources      any     `json:"resources"`
	MaxPrice       any     `json:"max_price"`
	Spot           *bool   `json:"spot"`
	Reservation    *string `json:"reservation"`
	Multinode      bool    `json:"multinode"`
	BackendOptions any     `json:"backend_options"`
}

// Retry is when a job is started again.
type Retry struct {
	OnEvents []string `json:"on_events"`
	Duration int64    `json:"duration"` // seconds
}

// FileArchiveTarget is an uploaded archive and where it is unpacked.
type FileArchiveTarget struct {
	ID   string `json:"id"`
	Path string `json:"path"`
}

// JobSubmission is an attempt of a job.
type JobSubmission struct {
	ID                       string               `json:"id"`
	SubmissionNum            int32                `json:"submission_num"`
	DeploymentNum            int32                `json:"deployment_num"`
	SubmittedAt              string               `json:"submitted_at"`
	LastProcessedAt          string               `json:"last_processed_at"`
	FinishedAt               *string              `json:"finished_at"`
	InactivitySecs           *int64               `json:"inactivity_secs"`
	Status                   string               `json:"status"`
	StatusMessage            string               `json:"status_message"`
	TerminationReason        *string              `json:"termination_reason"`
	TerminationReasonMessage *string              `json:"termination_reason_message"`
	ExitStatus               *int32               `json:"exit_status"`
	JobProvisioningData      *JobProvisioningData `json:"job_provisioning_data"`
	JobRuntimeData           *JobRuntimeData      `json:"job_runtime_data"`
	Error                    *string              `json:"error"`
	Probes                   []ProbeState         `json:"probes"`
	ImagePullProgress        *ImagePullProgress   `json:"image_pull_progress"`
}

// ImagePullProgress is how far the image of a job is.
type ImagePullProgress struct {
	DownloadedBytes   int64 `json:"downloaded_bytes"`
	ExtractedBytes    int64 `json:"extracted_bytes"`
	TotalBytes        int64 `json:"total_bytes"`
	IsTotalBytesFinal bool  `json:"is_total_bytes_final"`
}

// ConnectionInfo is how an attached user reaches a job.
type ConnectionInfo struct {
	IDEName            *string  `json:"ide_name"`
	AttachedIDEURL     *string  `json:"attached_ide_url"`
	ProxiedIDEURL      *string  `json:"proxied_ide_url"`
	AttachedSSHCommand []string `json:"attached_ssh_command"`
	ProxiedSSHCommand  []string `json:"proxied_ssh_command"`
	SSHProxyHostname   *string  `json:"sshproxy_hostname"`
	SSHProxyPort       *int     `json:"sshproxy_port"`
	SSHProxyUpstreamID *string  `json:"sshproxy_upstream_id"`
}

// JobProvisioningData is the instance that a job is on.
type JobProvisioningData struct {
	Backend          string       `json:"backend"`
	BaseBackend      *string      `json:"base_backend"`
	InstanceType     InstanceType `json:"instance_type"`
	InstanceID       string       `json:"instance_id"`
	Hostname         *string      `json:"hostname"`
	InternalIP       *string      `json:"internal_ip"`
	PublicIPEnabled  bool         `json:"public_ip_enabled"`
	InstanceNetwork  *string      `json:"instance_network"`
	Region           string       `json:"region"`
	AvailabilityZone *string      `json:"availability_zone"`
	Reservation      *string      `json:"reservation"`
	Price            Dollars      `json:"price"`
	Username         string       `json:"username"`
	SSHPort          *int         `json:"ssh_port"`
	Dockerized       bool         `json:"dockerized"`
	SSHProxy         any          `json:"ssh_proxy"`
	BackendData      any          `json:"backend_data"`
	GPUDriver        any          `json:"gpu_driver"`
}

// JobRuntimeData is what a job has of its instance.
type JobRuntimeData struct {
	NetworkMode string         `json:"network_mode"`
	GPU         int            `json:"gpu"`
	CPU         float64        `json:"cpu"`
	Memory      float64        `json:"memory"` // GB
	Ports       map[string]int `json:"ports"`  // of the container → of the host
	VolumeNames []string       `json:"volume_names"`
	Offer       *Offer         `json:"offer"`
	WorkingDir  *string        `json:"working_dir"`
	Username    *string        `json:"username"`
}
