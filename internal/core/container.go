package core

import "strings"

// The runtimes a job can be fixed to when it is submitted.
const (
	RuntimeProcess   = "process"
	RuntimeContainer = "container"
)

// Container is what a job runs in, instead of on its nodes themselves.
type Container struct {
	Image string `json:"image,omitempty"` // as a registry names it, or the absolute path of a file
	// Bundle is the folder of an OCI bundle on the node, in the place of an image.
	Bundle string `json:"bundle,omitempty"`
	// Own runs the program that the image names; the job's script is not looked at.
	Own        bool     `json:"own,omitempty"`
	Entry      []string `json:"entry,omitempty"` // with Own: instead of the image's entrypoint
	WorkDir    string   `json:"workdir,omitempty"`
	User       string   `json:"user,omitempty"` // NAME|UID[:GROUP|GID] inside; empty: the image's
	Privileged bool     `json:"privileged,omitempty"`
	Shm        Bytes    `json:"shm,omitempty"` // of /dev/shm; 0: the engine's default
	Mounts     []Mount  `json:"mounts,omitempty"`
	Ports      []Port   `json:"ports,omitempty"`
	// Submitter runs it as the job's own uid and gid instead of a user of the image, and without ways to become another.
	Submitter bool `json:"submitter,omitempty"`
	// Bounded: its mounts are below the paths that the site gives to everybody. Set when the job is taken.
	Bounded bool `json:"bounded,omitempty"`
	// ImageEnv: where the image and the job set the same variable, the image wins. As with Slurm's containers the job's
	// come from another machine; a YAML file's are meant.
	ImageEnv bool `json:"image_env,omitempty"`
	// Terminal runs the commands on a terminal, by SHELL -i -c as dstack does: a stop begins with Ctrl+C.
	Terminal bool `json:"terminal,omitempty"`
}

// ContainerRules are what of its node anybody's container may have.
type ContainerRules struct {
	Volumes    []string `json:"volumes,omitempty"` // what is below these paths
	Privileged bool     `json:"privileged,omitempty"`
}

// Below gives the path for everybody that another lies below, or is; empty: there is none.
func (r *ContainerRules) Below(p string) string {
	for _, v := range r.Volumes {
		if v = strings.TrimSuffix(v, "/"); p == v || strings.HasPrefix(p, v+"/") {
			return v
		}
	}
	return ""
}

// Mount shows a path of the node inside a container.
type Mount struct {
	Source   string `json:"source"`
	Target   string `json:"target"`
	ReadOnly bool   `json:"read_only,omitempty"`
	Optional bool   `json:"optional,omitempty"` // left out where the node has no such path
}

// Port is a port of a container and where an attached user finds it.
type Port struct {
	Local     int32 `json:"local,omitempty"` // 0: any
	Container int32 `json:"container"`
}

// Published is where a port of a container is found on its node.
type Published struct {
	Node NodeName `json:"node,omitempty"`
	Port int32    `json:"port"` // of the container
	Host int32    `json:"host"` // of its node
}

// NodeGroup is the variable by which the commands of a run with groups know theirs, by its number.
const NodeGroup = "BIREME_NODE_GROUP"

// RegistryAuth is the variable of a job's environment that holds what a registry wants to know, as JSON with username
// and password. It is taken out before anything in the container sees it.
const RegistryAuth = "BIREME_REGISTRY_AUTH"

// TakeRegistryAuth takes it out of an environment.
func TakeRegistryAuth(env []string) (rest []string, auth string) {
	for _, e := range env {
		if v, ok := strings.CutPrefix(e, RegistryAuth+"="); ok {
			auth = v
			continue
		}
		rest = append(rest, e)
	}
	return rest, auth
}
