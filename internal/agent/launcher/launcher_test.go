package launcher

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/wire"
)

// newLauncher is one whose image is in a file.
func newLauncher(t *testing.T, maker string, change func(*wire.Container)) *launcher {
	t.Helper()
	image := filepath.Join(t.TempDir(), "a.sif")
	if err := os.WriteFile(image, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	c := &wire.Container{
		Maker: maker, Program: "/opt/" + maker, Run: t.TempDir(), Images: t.TempDir(),
		Args: []string{"prog", "a b"},
	}
	c.Image, c.Submitter, c.ImageEnv = image, true, true
	if change != nil {
		change(c)
	}
	l := &wire.Launch{Container: c, Identity: wire.Identity{UID: 1000}}
	return &launcher{l: l, c: c, env: []string{
		"PATH=/mine", "SECRET=s3cr3t", "BIREME_TMPDIR=/job/tmp",
		"TMPDIR=/job/tmp", "HOME=/home/ann", "BASH_FUNC_x%%=() {",
	}}
}

// line is a command line, with the parts that change from run to run by name.
func (x *launcher) line(c *command) string {
	text := strings.Join(c.argv, " ")
	return strings.NewReplacer(x.c.Image, "IMAGE", x.c.Run, "RUN", x.c.Images, "IMAGES").Replace(text)
}

// TestCommandLines: what each maker is told. Values of variables never stand there.
func TestCommandLines(t *testing.T) {
	t.Parallel()
	mount := core.Mount{Source: "/tmp", Target: "/data,1", ReadOnly: true}
	for name, tc := range map[string]struct {
		maker  string
		change func(*wire.Container)
		want   string
		err    string
	}{
		"apptainer": {
			wire.MakerApptainer, nil,
			"/opt/apptainer --silent exec --containall --workdir /job/tmp IMAGE prog a b", "",
		},
		"apptainer with all": {wire.MakerApptainer, func(c *wire.Container) {
			c.Mounts, c.WorkDir, c.GPUs = []core.Mount{mount, {Source: "/no/such", Target: "/x", Optional: true}}, "/w",
				[]string{"GPU-1"}
		}, `/opt/apptainer --silent exec --containall --workdir /job/tmp --pwd /w --mount ` +
			`type=bind,"source=/tmp","destination=/data,1",ro --nv IMAGE prog a b`, ""},
		"apptainer and amd": {
			wire.MakerApptainer, func(c *wire.Container) { c.Devices = []string{"/dev/kfd"} },
			"/opt/apptainer --silent exec --containall --workdir /job/tmp --rocm IMAGE prog a b", "",
		},
		"apptainer's own program": {
			wire.MakerApptainer, func(c *wire.Container) { c.Own, c.Args = true, nil },
			"/opt/apptainer --silent run --containall --workdir /job/tmp IMAGE", "",
		},
		"apptainer, entrypoint": {
			wire.MakerApptainer, func(c *wire.Container) { c.Own, c.Entry = true, []string{"/e"} },
			"/opt/apptainer --silent exec --containall --workdir /job/tmp IMAGE /e prog a b", "",
		},
		"apptainer, privileged": {wire.MakerApptainer, func(c *wire.Container) {
			c.Privileged = true
		}, "", "a privileged one needs Docker or Podman"},
		"apptainer, a user": {wire.MakerApptainer, func(c *wire.Container) {
			c.User = "app"
		}, "", "another (app) needs Docker or Podman"},
		"no apptainer": {wire.MakerApptainer, func(c *wire.Container) {
			c.Program = ""
		}, "", "neither apptainer nor singularity"},
		"no image": {wire.MakerApptainer, func(c *wire.Container) {
			c.Image = "/no/such.sif"
		}, "", "image /no/such.sif, as user 1000"},
		"no mount": {wire.MakerApptainer, func(c *wire.Container) {
			c.Mounts = []core.Mount{{Source: "/no/such", Target: "/x"}}
		}, "", "mount /no/such, as user 1000"},
		"enroot": {wire.MakerEnroot, nil, "/opt/enroot start --rw --env SECRET -- IMAGE prog a b", ""},
		"enroot with all": {wire.MakerEnroot, func(c *wire.Container) {
			c.Mounts, c.WorkDir = []core.Mount{mount}, "/w"
		}, `/opt/enroot start --rw --mount /tmp:/data,1:rbind,x-create=auto,ro --env SECRET -- IMAGE /bin/sh -c cd ` +
			`"$0" && exec "$@" /w prog a b`, ""},
		"no enroot":  {wire.MakerEnroot, func(c *wire.Container) { c.Program = "" }, "", "no enroot"},
		"no runtime": {wire.MakerOCI, func(c *wire.Container) { c.Program = "" }, "", "neither runc nor crun"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := newLauncher(t, tc.maker, tc.change)
			cmd, err := map[string]func() (*command, error){
				wire.MakerApptainer: x.apptainer,
				wire.MakerEnroot:    x.enroot, wire.MakerOCI: x.oci,
			}[tc.maker]()
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Fatalf("got %v, want %q", err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := x.line(cmd); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
			if env := strings.Join(cmd.env, "\n"); !strings.Contains(env, "SECRET=s3cr3t") || strings.Contains(env, "/mine") {
				t.Errorf("its variables are\n%s", env)
			}
		})
	}
}

// TestFetching: an image is fetched once, by the maker's command, and a registry's password is on no command line.
func TestFetching(t *testing.T) {
	t.Parallel()
	x := newLauncher(t, wire.MakerApptainer, func(c *wire.Container) { c.Image = "reg.example:5000/a/b:1" })
	x.auth = `{"username":"me","password":"s3cr3t"}`
	for _, tc := range []struct {
		pull func(ref, file string) (*command, error)
		want string
		env  []string
	}{
		{
			x.pullSIF, "/opt/apptainer --silent pull --force --disable-cache FILE docker://reg.example:5000/a/b:1",
			[]string{"APPTAINER_DOCKER_USERNAME=me", "APPTAINER_DOCKER_PASSWORD=s3cr3t"},
		},
		{
			x.importSquash, "/opt/apptainer import --output FILE docker://reg.example:5000#a/b:1",
			[]string{"ENROOT_CONFIG_PATH=" + x.c.Run + "/config"},
		},
	} {
		cmd, err := tc.pull(Ref(x.c.Image), "FILE")
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(cmd.argv, " "); got != tc.want {
			t.Errorf("got  %s\nwant %s", got, tc.want)
		}
		for _, e := range tc.env {
			if !strings.Contains(strings.Join(cmd.env, "\n"), e) {
				t.Errorf("%s is missing among %q", e, cmd.env)
			}
		}
	}
	calls := 0
	pull := func(_, file string) (*command, error) {
		calls++
		return &command{argv: []string{"/bin/sh", "-c", "echo image > " + file}}, nil
	}
	for range 2 {
		if file, err := x.image(pull); err != nil || !there(file) {
			t.Fatalf("%s: %v", file, err)
		}
	}
	if calls != 1 {
		t.Errorf("it was fetched %d times", calls)
	}
	x.c.Image = "b"
	_, err := x.image(func(_, _ string) (*command, error) {
		return &command{argv: []string{"/bin/sh", "-c", "echo first; echo FATAL: no such image >&2; exit 255"}}, nil
	})
	if err == nil || !strings.HasPrefix(err.Error(), "image b: FATAL: no such image: ") {
		t.Errorf("got %v", err)
	}
}

// TestConfig: what becomes of a bundle's configuration.
func TestConfig(t *testing.T) {
	t.Parallel()
	x := newLauncher(t, wire.MakerOCI, func(c *wire.Container) {
		c.Image, c.WorkDir, c.Devices, c.Caps = "", "/w", []string{"/dev/fake0"}, []string{"KILL"}
	})
	dir := t.TempDir()
	x.c.Bundle = dir
	const in = `{"ociVersion":"1.0.2","process":{"terminal":true,"args":["sh"],"cwd":"/","env":["PATH=/bin",
"SECRET=own"],"user":{"uid":5,"gid":6,"additionalGids":[7]},
"capabilities":{"bounding":["CAP_KILL","CAP_SYS_ADMIN"],"ambient":["CAP_NET_RAW"]},
"rlimits":[{"type":"RLIMIT_NOFILE","hard":1,"soft":1}]},"root":{"path":"rootfs"},
"mounts":[{"destination":"/dev/pts","type":"devpts","options":["gid=5","newinstance"]},
{"destination":"/sys","type":"sysfs","source":"sysfs","options":["ro"]}],"linux":{"resources":{"devices":[]},
"cgroupsPath":"x","namespaces":[{"type":"pid"}],"seccomp":{"n":12345678901234567890}}}`
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(in), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := readBundle(dir); err == nil || !strings.Contains(err.Error(), "rootfs: no such file") {
		t.Errorf("without its files: %v", err)
	}
	if err := os.Mkdir(filepath.Join(dir, "rootfs"), 0o755); err != nil {
		t.Fatal(err)
	}
	spec, err := readBundle(dir)
	if err != nil {
		t.Fatal(err)
	}
	x.fillIn(spec, 1000, 1000)
	got, err := json.MarshalIndent(spec, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"ociVersion":"1.0.2","process":{"terminal":false,"args":["prog","a b"],"cwd":"/w",
"env":["PATH=/bin","SECRET=own"],"user":{"uid":5,"gid":6},"noNewPrivileges":true,
"capabilities":{"bounding":["CAP_KILL"],"ambient":[]}},
"root":{"path":"DIR/rootfs"},"mounts":[{"destination":"/dev/pts","type":"devpts","options":["newinstance"]},
{"destination":"/sys","type":"none","source":"/sys","options":["rbind","nosuid","noexec","nodev","ro"]},
{"destination":"/dev/fake0","type":"bind","source":"/dev/fake0","options":["bind","nosuid","rw","noexec"]}],
"linux":{"namespaces":[{"type":"pid"},{"type":"user"}],"seccomp":{"n":12345678901234567890},
"uidMappings":[{"containerID":5,"hostID":1000,"size":1}],"gidMappings":[{"containerID":6,"hostID":1000,
"size":1}]}}`
	var a, b any
	text := strings.ReplaceAll(want, "DIR", dir)
	for s, v := range map[string]*any{string(got): &a, text: &b} {
		dec := json.NewDecoder(strings.NewReader(s))
		dec.UseNumber()
		if err := dec.Decode(v); err != nil {
			t.Fatal(err)
		}
	}
	if d := cmp.Diff(b, a); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

// TestNoAccount: users without an account would all have one uid, and each other's files and processes with it.
func TestNoAccount(t *testing.T) {
	t.Parallel()
	for _, maker := range []string{wire.MakerApptainer, wire.MakerEnroot} {
		x := newLauncher(t, maker, nil)
		x.l.Identity = wire.Identity{UID: nobody, GID: nobody, Name: "laptop-user"}
		make := map[string]func() (*command, error){wire.MakerApptainer: x.apptainer, wire.MakerEnroot: x.enroot}[maker]
		if _, err := make(); err == nil || !strings.Contains(err.Error(), "laptop-user has no account") {
			t.Errorf("%s: %v", maker, err)
		}
	}
}
