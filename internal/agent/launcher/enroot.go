package launcher

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// enroot runs an image by NVIDIA's enroot: writable, what is written is gone with it.
func (x *launcher) enroot() (*command, error) {
	if x.c.Program == "" {
		return nil, errors.New("this node has no enroot to run it")
	}
	if err := x.forEngines(); err != nil {
		return nil, err
	}
	mounts, err := x.mounts()
	if err != nil {
		return nil, err
	}
	image, err := x.image(x.importSquash)
	if err != nil {
		return nil, err
	}
	argv := []string{x.c.Program, "start", "--rw"}
	for _, m := range mounts {
		if strings.ContainsAny(m.Source+m.Target, ": \t\n") {
			return nil, fmt.Errorf("mount %s:%s: enroot takes no paths with blanks or colons", m.Source, m.Target)
		}
		mode := "rw"
		if m.ReadOnly {
			mode = "ro"
		}
		argv = append(argv, "--mount", m.Source+":"+m.Target+":rbind,x-create=auto,"+mode)
	}
	if x.script != nil { // it hands on no descriptors but the three
		file := filepath.Join(x.c.Run, "script")
		if err := os.WriteFile(file, x.l.Script, 0o600); err != nil {
			return nil, err
		}
		x.path = "/.bireme/script"
		argv = append(argv, "--mount", file+":"+x.path+":bind,x-create=file,ro")
	}
	shared := x.shared()
	for _, e := range shared { // by name: the values are in its environment
		name, _, _ := strings.Cut(e, "=")
		argv = append(argv, "--env", name)
	}
	inside := x.inside()
	if x.c.WorkDir != "" && inside != nil { // it has no option for that
		inside = append([]string{"/bin/sh", "-c", `cd "$0" && exec "$@"`, x.c.WorkDir}, inside...)
	}
	mine := make(map[string]bool, len(shared))
	for _, e := range shared {
		name, _, _ := strings.Cut(e, "=")
		mine[name] = true
	}
	env := slices.DeleteFunc(x.enrootEnv(x.outer()), func(o string) bool {
		name, _, _ := strings.Cut(o, "=")
		return mine[name]
	})
	env = append(env, shared...)
	return &command{argv: append(append(argv, "--", image), inside...), env: env}, nil
}

// enrootEnv sets the directories of enroot: those of a login may not be there.
func (x *launcher) enrootEnv(env []string) []string {
	env = append(env, "ENROOT_RUNTIME_PATH="+filepath.Join(x.c.Run, "enroot"), "ENROOT_CACHE_PATH="+
		filepath.Join(x.c.Images, "cache"),
		"ENROOT_DATA_PATH="+filepath.Join(x.c.Run, "data"))
	if tmp := x.tmp(); tmp != "" {
		env = append(env, "ENROOT_TEMP_PATH="+tmp)
	}
	if !slices.ContainsFunc(env, func(e string) bool { return strings.HasPrefix(e, "HOME=") }) {
		env = append(env, "HOME="+x.c.Run)
	}
	return env
}

// importSquash is the command that fetches an image into a file.
func (x *launcher) importSquash(ref, file string) (*command, error) {
	// Enroot divides the registry from the rest by #.
	if host, rest, ok := strings.Cut(strings.TrimPrefix(ref, "docker://"), "/"); ok && strings.ContainsAny(host, ".:") {
		ref = "docker://" + host + "#" + rest
	}
	env := x.enrootEnv(x.outer())
	if x.auth != "" {
		a, err := x.registryAuth()
		if err != nil {
			return nil, err
		}
		host, _, _ := strings.Cut(strings.TrimPrefix(ref, "docker://"), "#")
		if host == ref || !strings.Contains(ref, "#") {
			host = "auth.docker.io"
		}
		conf := filepath.Join(x.c.Run, "config") // in memory, as all of the directory
		if err := os.MkdirAll(conf, 0o700); err != nil {
			return nil, err
		}
		line := fmt.Sprintf("machine %s login %s password %s\n", host, a.Username, a.Password)
		if err := os.WriteFile(filepath.Join(conf, ".credentials"), []byte(line), 0o600); err != nil {
			return nil, err
		}
		env = append(env, "ENROOT_CONFIG_PATH="+conf)
	}
	return &command{argv: []string{x.c.Program, "import", "--output", file, ref}, env: env}, nil
}
