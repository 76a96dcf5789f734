package docker

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/core"
)

// The labels of containers that are ours.
const (
	LabelNode = "dev.bireme.node" // whose: agents of one machine do not touch each other's
	LabelKey  = "dev.bireme.key"  // job.attempt.step
)

// Spec is a container to make, in the engine's words.
type Spec struct {
	Image        string
	User         string
	Env          []string
	Entrypoint   []string
	Cmd          []string
	WorkingDir   string `json:",omitempty"`
	Labels       map[string]string
	Hostname     string              `json:",omitempty"`
	ExposedPorts map[string]struct{} `json:",omitempty"`
	Healthcheck  Healthcheck
	HostConfig   HostConfig
}

// Healthcheck is a program that the engine runs inside now and then; NONE is none, also of the image's.
type Healthcheck struct{ Test []string }

// HostConfig is what a container has of its host.
type HostConfig struct {
	Mounts         []Mount `json:",omitempty"`
	Memory         int64   `json:",omitempty"`
	MemorySwap     int64   `json:",omitempty"`
	NanoCpus       int64   `json:",omitempty"`
	CpusetCpus     string  `json:",omitempty"`
	PidsLimit      *int64  `json:",omitempty"`
	ShmSize        int64   `json:",omitempty"`
	Privileged     bool    `json:",omitempty"`
	AutoRemove     bool    `json:",omitempty"`
	NetworkMode    string  `json:",omitempty"`
	IpcMode        string  `json:",omitempty"`
	SecurityOpt    []string
	CapDrop        []string
	CapAdd         []string          `json:",omitempty"`
	GroupAdd       []string          `json:",omitempty"`
	Sysctls        map[string]string `json:",omitempty"`
	Devices        []Device
	DeviceRequests []DeviceRequest
	LogConfig      LogConfig
	PortBindings   map[string][]PortBinding `json:",omitempty"`
	Tmpfs          map[string]string        `json:",omitempty"` // file systems in memory, with their options
	ExtraHosts     []string                 `json:",omitempty"` // NAME:ADDRESS
	OomScoreAdj    int                      `json:",omitempty"`
}

// Mount is a path of the host, shown inside.
type Mount struct {
	Type     string // bind
	Source   string
	Target   string
	ReadOnly bool `json:",omitempty"`
}

// Device is a device file.
type Device struct {
	PathOnHost        string
	PathInContainer   string
	CgroupPermissions string
}

// DeviceRequest asks a driver for devices.
type DeviceRequest struct {
	Driver       string
	DeviceIDs    []string
	Capabilities [][]string
}

// LogConfig says where the engine keeps output.
type LogConfig struct{ Type string }

// PortBinding is where a port is found on the host.
type PortBinding struct {
	HostIP   string `json:"HostIp"`
	HostPort string
}

// State is how a container is.
type State struct {
	Status    string
	Running   bool
	Paused    bool
	OOMKilled bool
	Dead      bool
	Pid       int
	ExitCode  int
	Error     string
}

// Create makes a container under a name. One of that name that is there already is ours, from an earlier try: it is
// removed.
func (c *Client) Create(ctx context.Context, name string, s *Spec) (id string, err error) {
	var made struct{ ID string }
	path := "/containers/create?name=" + url.QueryEscape(name)
	err = c.call(ctx, http.MethodPost, path, s, &made)
	if isStatus(err, http.StatusConflict) {
		if err := c.Remove(ctx, name); err != nil {
			return "", err
		}
		err = c.call(ctx, http.MethodPost, path, s, &made)
	}
	return made.ID, err
}

// Start starts a container.
func (c *Client) Start(ctx context.Context, id string) error {
	return c.call(ctx, http.MethodPost, "/containers/"+id+"/start", nil, nil)
}

// Pause stops or continues a container. One that is so already, or gone, is no fault.
func (c *Client) Pause(ctx context.Context, id string, on bool) error {
	verb := "unpause"
	if on {
		verb = "pause"
	}
	err := c.call(ctx, http.MethodPost, "/containers/"+id+"/"+verb, nil, nil)
	if isStatus(err, http.StatusNotFound) || isStatus(err, http.StatusConflict) ||
		isStatus(err, http.StatusInternalServerError) {
		return nil
	}
	return err
}

// Wait returns when a container does not run, with its exit status.
func (c *Client) Wait(ctx context.Context, id string) (int, error) {
	var end struct {
		StatusCode int
		Error      *struct{ Message string }
	}
	if err := c.call(ctx, http.MethodPost, "/containers/"+id+"/wait", nil, &end); err != nil {
		return 0, err
	}
	if end.Error != nil && end.Error.Message != "" {
		return end.StatusCode, errors.New(end.Error.Message)
	}
	return end.StatusCode, nil
}

// WaitRemoved returns when a container that removes itself is gone.
func (c *Client) WaitRemoved(ctx context.Context, id string) error {
	err := c.call(ctx, http.MethodPost, "/containers/"+id+"/wait?condition=removed", nil, nil)
	if isStatus(err, http.StatusNotFound) {
		return nil
	}
	return err
}

// State asks how a container is.
func (c *Client) State(ctx context.Context, id string) (*State, error) {
	var i struct{ State State }
	return &i.State, c.call(ctx, http.MethodGet, "/containers/"+id+"/json", nil, &i)
}

// ImageOf is the engine's id of the image that a container was made of.
func (c *Client) ImageOf(ctx context.Context, id string) (string, error) {
	var i struct{ Image string }
	err := c.call(ctx, http.MethodGet, "/containers/"+id+"/json", nil, &i)
	return i.Image, err
}

// Ports asks where the ports of a container are found on this machine.
func (c *Client) Ports(ctx context.Context, id string) ([]core.Published, error) {
	var i struct {
		NetworkSettings struct {
			Ports map[string][]PortBinding
		}
	}
	if err := c.call(ctx, http.MethodGet, "/containers/"+id+"/json", nil, &i); err != nil {
		return nil, err
	}
	var out []core.Published
	for name, list := range i.NetworkSettings.Ports {
		port, kind, _ := strings.Cut(name, "/")
		for _, b := range list {
			inside, err1 := strconv.ParseInt(port, 10, 32)
			outside, err2 := strconv.ParseInt(b.HostPort, 10, 32)
			p := core.Published{Port: int32(inside), Host: int32(outside)}
			// There is one for each kind of address, not always of the same number: of two the older kind's is told.
			second := strings.Contains(b.HostIP, ":") && len(list) > 1
			if err1 == nil && err2 == nil && kind == "tcp" && !second {
				out = append(out, p)
			}
		}
	}
	slices.SortFunc(out, func(a, b core.Published) int { return cmp.Compare(a.Port, b.Port) })
	return out, nil
}

// Remove kills and removes a container. One that is not there, or is going, is no fault.
func (c *Client) Remove(ctx context.Context, id string) error {
	err := c.call(ctx, http.MethodDelete, "/containers/"+id+"?force=1&v=1", nil, nil)
	if isStatus(err, http.StatusNotFound) || isStatus(err, http.StatusConflict) {
		return nil
	}
	return err
}

// Listed is a container in a list.
type Listed struct {
	ID     string `json:"Id"`
	Labels map[string]string
	State  string
	Image  string `json:"ImageID"`
}

// List returns the containers with a label, those that ended too.
func (c *Client) List(ctx context.Context, label, value string) ([]Listed, error) {
	filter, err := json.Marshal(map[string][]string{"label": {label + "=" + value}})
	if err != nil {
		return nil, err
	}
	var list []Listed
	err = c.call(ctx, http.MethodGet, "/containers/json?all=1&filters="+url.QueryEscape(string(filter)), nil, &list)
	return list, err
}

// Info is what an engine says of itself.
type Info struct {
	ServerVersion string
	CgroupDriver  string
	Runtimes      map[string]any
	// SecurityOptions are those that the daemon runs with: "name=userns", "name=rootless".
	SecurityOptions []string
}

// Info asks the engine about itself.
func (c *Client) Info(ctx context.Context) (*Info, error) {
	i := new(Info)
	if err := c.call(ctx, http.MethodGet, "/info", nil, i); err != nil {
		return nil, fmt.Errorf("container engine: %w", err)
	}
	return i, nil
}
