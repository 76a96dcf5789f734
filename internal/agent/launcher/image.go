package launcher

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"bireme.dev/bireme/internal/wire"
)

// Shared is the directory of images that the node fetched before anybody asked, beside those of the users.
const Shared = "shared"

// ImageFile is the name of the file that an image is kept in.
func ImageFile(maker, ref string) string {
	sum := sha256.Sum256([]byte(ref))
	ext := ".sif"
	if maker == wire.MakerEnroot {
		ext = ".sqsh"
	}
	return hex.EncodeToString(sum[:12]) + ext
}

// Ref is an image as makers are told it: by the place it comes from.
func Ref(image string) string {
	if strings.Contains(image, "://") {
		return image
	}
	return "docker://" + image
}

// image returns the file of the launch's image, which it fetches if it is not there: one of the user's own, for what
// one may have from a registry another may not. Who uses one marks it as used; the node removes those not used for
// longest.
func (x *launcher) image(pull func(ref, file string) (*command, error)) (string, error) {
	if path.IsAbs(x.c.Image) {
		if _, err := os.Stat(x.c.Image); err != nil {
			return "", fmt.Errorf("image %s, as user %d: %w", x.c.Image, x.l.Identity.UID, err)
		}
		return x.c.Image, nil
	}
	ref := Ref(x.c.Image)
	name := ImageFile(x.c.Maker, ref)
	if file := filepath.Join(filepath.Dir(x.c.Images), Shared, name); there(file) {
		return file, nil
	}
	file := filepath.Join(x.c.Images, name)
	lock, err := os.OpenFile(file+".lock", os.O_CREATE|os.O_RDWR|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil { // tasks of one step want the same
		return "", os.NewSyscallError("flock", err)
	}
	now := time.Now()
	if there(file) {
		return file, os.Chtimes(file, now, now)
	}
	x.doing(Fetching + x.c.Image)
	cmd, err := pull(ref, file+".new")
	if err != nil {
		return "", err
	}
	if err := Fetch(cmd.argv, cmd.env); err != nil {
		_ = os.Remove(file + ".new")
		return "", fmt.Errorf("image %s: %w", x.c.Image, err)
	}
	return file, os.Rename(file+".new", file)
}

// Prefetch fetches an image into a file of the container's Images, unless it is there.
func Prefetch(c *wire.Container) error {
	x := &launcher{l: &wire.Launch{Container: c}, c: c}
	pull := x.pullSIF
	if c.Maker == wire.MakerEnroot {
		pull = x.importSquash
	}
	file, err := x.image(pull)
	if err != nil {
		return err
	}
	return os.Chmod(file, 0o644) // for everybody
}

func there(file string) bool {
	st, err := os.Stat(file)
	return err == nil && st.Mode().IsRegular()
}

// Fetch runs a maker's command that fetches an image, and says in its last words why it did not.
func Fetch(argv, env []string) error {
	cmd := exec.Command(argv[0], argv[1:]...)
	var said bytes.Buffer
	cmd.Env, cmd.Stdout, cmd.Stderr, cmd.Dir = env, &said, &said, "/"
	err := cmd.Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return err
	}
	lines := strings.Split(strings.TrimSpace(said.String()), "\n")
	if last := strings.TrimSpace(lines[len(lines)-1]); last != "" {
		return fmt.Errorf("%s: %w", last, err)
	}
	return fmt.Errorf("%s: %w", filepath.Base(argv[0]), err)
}
