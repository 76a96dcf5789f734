package config

// Run is what tasks, dev environments and services share.
type Run struct {
	Type         Kind          `json:"type"`
	Name         *string       `json:"name"`
	Image        *string       `json:"image"`
	User         *string       `json:"user"`
	Privileged   bool          `json:"privileged"`
	Entrypoint   *string       `json:"entrypoint"`
	WorkingDir   *string       `json:"working_dir"`
	HomeDir      string        `json:"home_dir"` // ignored by dstack
	RegistryAuth *RegistryAuth `json:"registry_auth"`
	Python       *string       `json:"python"` // 3.9 to 3.15
	NVCC         *bool         `json:"nvcc"`
	SingleBranch *bool         `json:"single_branch"`
	Env          Env           `json:"env"`
	Shell        *string       `json:"shell"` // sh, bash or an absolute path
	Resources    Resources     `json:"resources"`
	Priority     *int          `json:"priority"` // 0 to 100
	Volumes      []Mount       `json:"volumes"`
	Docker       *bool         `json:"docker"`
	Repos        []Repo        `json:"repos"`
	Files        []File        `json:"files"`
	Dstack       bool          `json:"dstack"`
	Setup        []string      `json:"setup"` // acts in dev environments only
}

// Task is `type: task`.
type Task struct {
	Nodes    *int        `json:"nodes,omitempty"`  // nil: 1
	Groups   []NodeGroup `json:"groups,omitempty"` // nil: one group of Nodes
	Ports    []Port      `json:"ports"`
	Commands []string    `json:"commands"`
	Run
	Policy
}

// NodeGroup is a group of equal nodes of a task.
type NodeGroup struct {
	Name      string    `json:"name"`
	Nodes     int       `json:"nodes"`
	Resources Resources `json:"resources"`
	Commands  []string  `json:"commands"`
	Ports     []Port    `json:"ports"`
}

// DevEnvironment is `type: dev-environment`.
type DevEnvironment struct {
	IDE        *string  `json:"ide"` // vscode, cursor, windsurf, zed
	Version    *string  `json:"version"`
	Init       []string `json:"init"`
	Inactivity *int64   `json:"inactivity_duration"` // seconds; nil: off
	Ports      []Port   `json:"ports"`
	Run
	Policy
}

// RegistryAuth is the login of an image's registry. Both parts may hold ${{ env.NAME }} or ${{ secrets.NAME }}.
type RegistryAuth struct {
	Username string `json:"username"`
	Password string `json:"password"`
}

// String keeps the password out of messages.
func (a RegistryAuth) String() string { return "login of " + a.Username }

// GoString is String for %#v.
func (a RegistryAuth) GoString() string { return a.String() }

// Port is a port of the container and where an attached user finds it.
type Port struct {
	Local     *int `json:"local_port"` // nil: any that is free
	Container int  `json:"container_port"`
}

// File is a file or folder of the client that the run begins with.
type File struct {
	Local string `json:"local_path"`
	Path  string `json:"path"`
}

// Repo is the repository of a run. Exactly one of Local and URL is set.
type Repo struct {
	Local    *string `json:"local_path"`
	URL      *string `json:"url"`
	Branch   *string `json:"branch"`
	Hash     *string `json:"hash"`
	Path     string  `json:"path"`
	IfExists string  `json:"if_exists"` // error or skip
}
