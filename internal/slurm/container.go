package slurm

import (
	"os"
	"path"
	"path/filepath"
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

// containerImage takes [REGISTRY#]IMAGE[:TAG]; elsewhere the registry ends with a slash, which is taken too. A path,
// which starts with / or ., names an image in a file.
func containerImage(r *Request, v string) error {
	if strings.HasPrefix(v, "/") || strings.HasPrefix(v, ".") {
		file, err := filepath.Abs(v)
		if err != nil || strings.ContainsAny(v, "\n?#") {
			return r.Fail(ExitError, "Invalid --container-image specification").hint("%q is no path of an image's file", v)
		}
		r.container().Image = file
		return nil
	}
	v = strings.TrimPrefix(v, "docker://")
	if v == "" || strings.ContainsAny(v, " \t\n?@") && !strings.Contains(v, "@sha256:") {
		return r.Fail(ExitError, "Invalid --container-image specification").hint(
			"write [REGISTRY/]IMAGE[:TAG], or the path of a .sif or .sqsh file")
	}
	r.container().Image = strings.Replace(v, "#", "/", 1)
	return nil
}

// containerBundle takes the folder of an OCI bundle.
func containerBundle(r *Request, v string) error {
	dir, err := filepath.Abs(v)
	if err != nil || v == "" {
		return r.Fail(ExitError, "Invalid --container specification").hint(
			"it is the folder of an OCI bundle, with config.json in it")
	}
	r.container().Bundle = dir
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
					return r.Fail(ExitError, "Invalid --container-mounts specification").hint(
						"%q is not a flag; there are ro and rw", flag)
				}
			}
		}
		if len(f) > 3 || !path.IsAbs(m.Source) || !path.IsAbs(m.Target) {
			return r.Fail(ExitError, "Invalid --container-mounts specification").hint(
				"write /SRC:/DST[:ro], separated by commas, not %q", w)
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
		return r.Fail(ExitError, "Invalid --container-workdir specification").hint(
			"it is a path inside the container, from the root")
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
	case c.Bundle != "" && (c.Image != "" || len(c.Mounts) > 0):
		return r.Fail(ExitError, "--container has its own files and mounts").hint(
			"leave out --container-image and --container-mounts")
	case c.Bundle == "" && c.Image == "":
		return r.Fail(ExitError, "options of a container need --container-image")
	case r.tool != Sbatch && c.Bundle != "":
		return r.Fail(ExitError, "--container is not supported").hint(
			"of sbatch it is; the steps of a job in a bundle run in that bundle")
	case r.tool == Srun: // the step's own, whatever its job runs in
		r.Step.Container, r.extra.Container = c, nil
		r.Spec.Runtime = core.RuntimeProcess
		return nil
	}
	r.Spec.Runtime = core.RuntimeContainer
	return nil
}
