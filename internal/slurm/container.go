package slurm

import (
	"os"
	"path"
	"strings"

	"bireme.dev/bireme/internal/core"
)

// The options of jobs in containers, in the words of NVIDIA's plugin for Slurm (pyxis 0.20), which sites know.

// container gives the job one, for its options to fill in.
func (r *Request) container() *core.Container {
	if r.extra.Container == nil {
		r.extra.Container = &core.Container{Submitter: true, ImageEnv: true}
	}
	return r.extra.Container
}

// containerImage takes [REGISTRY#]IMAGE[:TAG]; elsewhere the registry ends with a slash, which is taken too.
func containerImage(r *Request, v string) error {
	v = strings.TrimPrefix(v, "docker://")
	if v == "" || strings.ContainsAny(v, " \t\n?@") && !strings.Contains(v, "@sha256:") || strings.HasPrefix(v, "/") || strings.HasPrefix(v, ".") {
		return r.Fail(ExitError, "Invalid --container-image specification").hint("write [REGISTRY/]IMAGE[:TAG]; images in files are not run")
	}
	r.container().Image = strings.Replace(v, "#", "/", 1)
	return nil
}

// containerMounts takes SRC:DST[:FLAGS] separated by commas, or SRC alone for the same place inside.
func containerMounts(r *Request, v string) error {
	c := r.container()
	for w := range strings.SplitSeq(v, ",") {
		f := strings.Split(w, ":")
		m := core.Mount{Source: path.Clean(f[0]), Target: path.Clean(f[0])}
		if len(f) > 1 {
			m.Target = path.Clean(f[1])
		}
		if len(f) > 2 {
			for flag := range strings.SplitSeq(f[2], "+") {
				switch flag {
				case "ro":
					m.ReadOnly = true
				case "rw":
				default:
					return r.Fail(ExitError, "Invalid --container-mounts specification").hint("%q is not a flag; there are ro and rw", flag)
				}
			}
		}
		if len(f) > 3 || !path.IsAbs(m.Source) || !path.IsAbs(m.Target) {
			return r.Fail(ExitError, "Invalid --container-mounts specification").hint("write /SRC:/DST[:ro], separated by commas, not %q", w)
		}
		c.Mounts = append(c.Mounts, m)
	}
	return nil
}

// containerHome shows the caller's home inside.
func containerHome(r *Request, _ string) error {
	home, err := os.UserHomeDir()
	if err != nil || !path.IsAbs(home) {
		return r.Fail(ExitError, "--container-mount-home: it is not known where the home is").hint("set HOME")
	}
	c := r.container()
	c.Mounts = append(c.Mounts, core.Mount{Source: path.Clean(home), Target: path.Clean(home)})
	return nil
}

func containerWorkDir(r *Request, v string) error {
	if !path.IsAbs(v) {
		return r.Fail(ExitError, "Invalid --container-workdir specification").hint("it is a path inside the container, from the root")
	}
	r.container().WorkDir = path.Clean(v)
	return nil
}

// finishContainer checks what the options say together.
func (r *Request) finishContainer() error {
	c := r.extra.Container
	switch {
	case c == nil: // whatever the project's configurations run in: these commands say it themselves
		r.Spec.Runtime = core.RuntimeProcess
		return nil
	case c.Image == "":
		return r.Fail(ExitError, "options of a container need --container-image")
	case r.tool != Sbatch:
		return r.Fail(ExitError, "--container-image is not supported").hint("only batch jobs run in containers; srun --jobid=N --overlap runs a step in the container of job N")
	}
	r.Spec.Runtime = core.RuntimeContainer
	return nil
}
