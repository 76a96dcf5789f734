package launcher

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// apptainer runs an image by apptainer, or by singularity as it was called before. What the user has of the node is
// what is mounted: no home, and a /tmp of the job's own.
func (x *launcher) apptainer() (*command, error) {
	if x.c.Program == "" {
		return nil, errors.New("this node has neither apptainer nor singularity to run it")
	}
	if err := x.forEngines(); err != nil {
		return nil, err
	}
	mounts, err := x.mounts()
	if err != nil {
		return nil, err
	}
	image, err := x.image(x.pullSIF)
	if err != nil {
		return nil, err
	}
	verb, inside := "exec", x.inside()
	if inside == nil {
		verb = "run"
	}
	argv := []string{x.c.Program, "--silent", verb, "--containall"}
	if tmp := x.tmp(); tmp != "" {
		argv = append(argv, "--workdir", tmp)
	}
	if x.c.WorkDir != "" {
		argv = append(argv, "--pwd", x.c.WorkDir)
	}
	for _, m := range mounts {
		field := func(name, path string) string { return `"` + name + "=" + strings.ReplaceAll(path, `"`, `""`) + `"` }
		text := "type=bind," + field("source", m.Source) + "," + field("destination", m.Target)
		if m.ReadOnly {
			text += ",ro"
		}
		argv = append(argv, "--mount", text)
	}
	switch {
	case len(x.c.GPUs) > 0:
		argv = append(argv, "--nv")
	case x.hasDevice("/dev/kfd"):
		argv = append(argv, "--rocm")
	}
	env := x.outer()
	for _, e := range x.shared() { // by either name, as both programs read their own
		env = append(env, "APPTAINERENV_"+e, "SINGULARITYENV_"+e)
	}
	return &command{argv: append(append(argv, image), inside...), env: env}, nil
}

func (x *launcher) hasDevice(name string) bool {
	for _, d := range x.c.Devices {
		if d == name {
			return true
		}
	}
	return false
}

// pullSIF is the command that fetches an image into a file.
func (x *launcher) pullSIF(ref, file string) (*command, error) {
	env := x.outer("APPTAINER_CACHEDIR="+x.c.Images+"/cache", "SINGULARITY_CACHEDIR="+x.c.Images+"/cache")
	if x.auth != "" {
		a, err := x.registryAuth()
		if err != nil {
			return nil, err
		}
		for _, p := range []string{"APPTAINER", "SINGULARITY"} {
			env = append(env, p+"_DOCKER_USERNAME="+a.Username, p+"_DOCKER_PASSWORD="+a.Password)
		}
	}
	return &command{argv: []string{x.c.Program, "--silent", "pull", "--force", "--disable-cache", file, ref}, env: env},
		nil
}

// auth is what a registry wants to know.
type auth struct{ Username, Password string }

// String keeps the password out of whatever prints an auth.
func (a auth) String() string { return "login of " + a.Username }

// GoString is String for %#v.
func (a auth) GoString() string { return a.String() }

func (x *launcher) registryAuth() (auth, error) {
	var a auth
	if json.Unmarshal([]byte(x.auth), &a) != nil { // its text is a secret
		return a, fmt.Errorf("%s is not what a registry could be told", "registry_auth")
	}
	return a, nil
}
