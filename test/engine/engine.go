package engine

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// engines counts those of this process.
var engines atomic.Int32

// Engine is a dockerd that runs, or a service of Podman.
type Engine struct {
	Socket  string
	base    string
	bridge  string
	number  int32
	program string
	args    []string
	env     []string   // beside our own
	enter   []string   // what runs its programs in a mount namespace; none: this process's
	alone   bool       // it stands on no containerd
	gone    chan error // the daemon's end
	below   *exec.Cmd  // containerd
	cmd     *exec.Cmd
	http    *http.Client
}

// Start starts a dockerd below a new directory and returns when it answers.
func Start(ctx context.Context) (*Engine, error) { return start(ctx, "", "") }

// StartIn starts one in a mount namespace, which a file names: it sees the directories of a host that has some of its
// own.
func StartIn(ctx context.Context, mounts string) (*Engine, error) { return start(ctx, "", mounts) }

// StartRemapped starts one that maps root of its containers to the subordinate ids of a user.
func StartRemapped(ctx context.Context, user string) (*Engine, error) { return start(ctx, user, "") }

func start(ctx context.Context, remap, mounts string) (*Engine, error) {
	program, err := exec.LookPath("dockerd")
	if err != nil {
		if program, err = exec.LookPath("/usr/sbin/dockerd"); err != nil {
			return nil, errors.New("there is no dockerd: scripts/prereqs.sh installs one")
		}
	}
	e, err := newEngine(program)
	if err != nil {
		return nil, err
	}
	if mounts != "" {
		e.enter = []string{"nsenter", "--mount=" + mounts, "--"}
	}
	e.args = []string{
		"--containerd", filepath.Join(e.base, "c-sock"), "--data-root", filepath.Join(e.base, "data"), "--exec-root",
		filepath.Join(e.base, "exec"),
		"--pidfile", filepath.Join(e.base, "pid"), "-H", "unix://" + e.Socket, "--bridge", e.bridge, "--iptables=false",
		"--ip-masq=false",
		"--shutdown-timeout", "2",
	}
	if remap != "" {
		e.args = append(e.args, "--userns-remap", remap)
		if err := os.Chmod(e.base, 0o711); err != nil { // root inside is nobody in particular here
			return nil, errors.Join(err, e.Stop())
		}
	}
	return e.begin(ctx)
}

// newEngine makes room for one.
func newEngine(program string) (*Engine, error) {
	base, err := os.MkdirTemp("/tmp", "be-")
	if err != nil {
		return nil, err
	}
	e := &Engine{program: program, Socket: filepath.Join(base, "sock"), base: base, number: engines.Add(1)}
	e.bridge = fmt.Sprintf("be%d-%d", os.Getpid(), e.number)
	e.http = &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", e.Socket)
		},
	}}
	return e, nil
}

// begin starts it, and leaves nothing of one that does not.
func (e *Engine) begin(ctx context.Context) (*Engine, error) {
	if err := e.makeBridge(); err != nil {
		return nil, errors.Join(err, e.Stop())
	}
	if err := e.Up(ctx); err != nil {
		return nil, errors.Join(err, e.Stop())
	}
	return e, nil
}

// makeBridge makes a network for the engine that leads nowhere and meets no other engine's.
func (e *Engine) makeBridge() error {
	for _, args := range [][]string{
		{"link", "add", e.bridge, "type", "bridge"},
		{"addr", "add", e.subnet(1), "dev", e.bridge},
		{"link", "set", e.bridge, "up"},
	} {
		if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
			return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, out)
		}
	}
	return nil
}

// subnet is the network of the bridge, told by its address with a last number.
func (e *Engine) subnet(last int) string {
	return fmt.Sprintf("10.%d.%d.%d/24", 200+(os.Getpid()/256+int(e.number))%50, os.Getpid()%256, last)
}

// startContainerd starts what dockerd stands on. As on a real host it is nobody's child, so that it outlives a dockerd
// that is killed.
func (e *Engine) startContainerd() error {
	program, err := exec.LookPath("containerd")
	if err != nil {
		return errors.New("there is no containerd: scripts/prereqs.sh installs one with Docker")
	}
	config := fmt.Sprintf("version = 2\nroot = %q\nstate = %q\ndisabled_plugins = [\"io.containerd.grpc.v1.cri\"]\n"+
		"[grpc]\naddress = %q\n",
		filepath.Join(e.base, "c-root"), filepath.Join(e.base, "c-state"), filepath.Join(e.base, "c-sock"))
	file := filepath.Join(e.base, "containerd.toml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		return err
	}
	log, err := os.OpenFile(filepath.Join(e.base, "c-log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	e.below = e.command(program, "--config", file)
	e.below.Stdout, e.below.Stderr = log, log
	e.below.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return e.below.Start()
}

// command is one in the engine's mount namespace.
func (e *Engine) command(program string, args ...string) *exec.Cmd {
	argv := append(append(slices.Clone(e.enter), program), args...)
	return exec.Command(argv[0], argv[1:]...)
}

// Up starts the daemon, again if it was killed.
func (e *Engine) Up(ctx context.Context) error {
	if e.below == nil && !e.alone {
		if err := e.startContainerd(); err != nil {
			return err
		}
	}
	log, err := os.OpenFile(filepath.Join(e.base, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	e.cmd = e.command(e.program, e.args...)
	e.cmd.Env = append(os.Environ(), e.env...)
	e.cmd.Stdout, e.cmd.Stderr = log, log
	e.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := e.cmd.Start(); err != nil {
		return err
	}
	e.gone = make(chan error, 1)
	go func() { e.gone <- e.cmd.Wait() }()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		resp, err := e.http.Get("http://engine/_ping")
		if err == nil {
			resp.Body.Close()
			return nil
		}
		select {
		case err := <-e.gone:
			text, _ := os.ReadFile(filepath.Join(e.base, "log"))
			return fmt.Errorf("%s ended: %v: %s", e.program, err, text)
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// Kill kills the daemon; what it started runs on.
func (e *Engine) Kill() error {
	if err := e.cmd.Process.Kill(); err != nil {
		return err
	}
	<-e.gone
	return nil
}

// Stop ends the engine and removes everything of it.
func (e *Engine) Stop() error {
	var faults []error
	if e.cmd != nil && e.cmd.Process != nil {
		_ = e.cmd.Process.Signal(syscall.SIGTERM) // it may be gone
		deadline := time.Now().Add(20 * time.Second)
		for e.cmd.Process.Signal(syscall.Signal(0)) == nil && time.Now().Before(deadline) {
			if _, err := os.Stat(filepath.Join(e.base, "pid")); err != nil {
				break // its last act
			}
			nap()
		}
		_ = e.cmd.Process.Kill()
	}
	if e.below != nil && e.below.Process != nil {
		_ = e.below.Process.Signal(syscall.SIGTERM)
		_ = e.below.Wait() // however it went
	}
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	for line := range strings.Lines(string(mounts)) {
		if f := strings.Fields(line); len(f) > 4 && strings.HasPrefix(f[4], e.base) {
			_ = unix.Unmount(f[4], unix.MNT_DETACH)
		}
	}
	if out, err := exec.Command("ip", "link", "del", e.bridge).CombinedOutput(); err != nil {
		faults = append(faults, fmt.Errorf("ip link del: %w: %s", err, out))
	}
	return errors.Join(append(faults, os.RemoveAll(e.base))...)
}

// nap is the pause between two looks.
func nap() {
	t := time.NewTimer(20 * time.Millisecond)
	<-t.C
}

// File is one file of an image.
type File struct {
	Path string
	Mode int64
	Data []byte // nil: a directory
	Link string // a symbolic link
}

// Import makes an image of files; changes are lines such as `CMD ["x"]`.
func (e *Engine) Import(ref string, files []File, changes ...string) error {
	layer, err := Tar(files)
	if err != nil {
		return err
	}
	repo, tag, _ := strings.Cut(ref, ":")
	q := url.Values{"fromSrc": {"-"}, "repo": {repo}, "tag": {tag}, "changes": changes}
	resp, err := e.http.Post("http://engine/images/create?"+q.Encode(), "application/x-tar", bytes.NewReader(layer))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && (resp.StatusCode != http.StatusOK || bytes.Contains(text, []byte(`"error"`))) {
		err = fmt.Errorf("import %s: %s: %s", ref, resp.Status, text)
	}
	if err == nil && e.alone { // as Podman 4.3: it takes no notice of the tag
		_, err = e.Call(http.MethodPost, "/images/"+repo+":latest/tag?"+url.Values{"repo": {repo}, "tag": {tag}}.Encode())
	}
	return err
}

// Tar packs files as a layer.
func Tar(files []File) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range files {
		h := &tar.Header{Name: strings.TrimPrefix(f.Path, "/"), Mode: f.Mode, Size: int64(len(f.Data)), Typeflag: tar.TypeReg}
		switch {
		case f.Link != "":
			h.Typeflag, h.Linkname = tar.TypeSymlink, f.Link
		case f.Data == nil:
			h.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.Data); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), w.Close()
}

// applets are what the image of BusyBox answers to.
const applets = "sh wget httpd nc stty echo sleep cat ls env id true false ps kill seq dd head tail mkdir touch test " +
	"tar tr rm cp pwd wc stat mount grep"

// BusyBox is the files of a small system: a static BusyBox by the names of its programs, and a user app.
func BusyBox() ([]File, error) {
	path, err := exec.LookPath("busybox")
	if err != nil {
		return nil, errors.New("there is no busybox: scripts/prereqs.sh installs one")
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	files := []File{
		{Path: "bin", Mode: 0o755},
		{Path: "tmp", Mode: 0o1777},
		{Path: "root", Mode: 0o700},
		{Path: "etc", Mode: 0o755},
		{Path: "home", Mode: 0o755},
		{Path: "home/app", Mode: 0o777},
		{Path: "bin/busybox", Mode: 0o755, Data: data},
		{
			Path: "etc/passwd", Mode: 0o644,
			Data: []byte("root:x:0:0:root:/root:/bin/sh\napp:x:1234:1234::/home/app:/bin/sh\n"),
		},
		{Path: "etc/group", Mode: 0o644, Data: []byte("root:x:0:\napp:x:1234:\nextra:x:77:app\n")},
	}
	for _, a := range strings.Fields(applets) {
		files = append(files, File{Path: "bin/" + a, Mode: 0o777, Link: "busybox"})
	}
	return files, nil
}

// Call asks the engine something and gives its answer.
func (e *Engine) Call(method, path string) (string, error) {
	req, err := http.NewRequest(method, "http://engine"+path, nil)
	if err != nil {
		return "", err
	}
	resp, err := e.http.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode >= 400 {
		err = fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, b)
	}
	return string(b), err
}

// Find returns the id of the running container of a launch, named job.attempt.step; empty: there is none.
func (e *Engine) Find(key string) (string, error) {
	filter := url.QueryEscape(`{"label":["dev.bireme.key=` + key + `"]}`)
	text, err := e.Call(http.MethodGet, "/containers/json?filters="+filter)
	if err != nil {
		return "", err
	}
	var list []struct{ ID string }
	if err := json.Unmarshal([]byte(text), &list); err != nil || len(list) == 0 {
		return "", err
	}
	return list[0].ID, nil
}
