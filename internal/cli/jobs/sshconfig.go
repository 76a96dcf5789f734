package jobs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"bireme.dev/bireme/internal/client"
)

// sshConfig has the hosts of attached runs in a file of ours, which one line of the user's own ssh configuration
// includes. Nothing else of the user's file is touched.
type sshConfig struct {
	own  string // our file
	user string // ~/.ssh/config
}

// newSSHConfig finds the two files.
func newSSHConfig() (*sshConfig, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return nil, err
	}
	conf := client.ConfigPath()
	if conf == "" {
		return nil, errors.New("there is no folder for the user's settings")
	}
	return &sshConfig{
		own: filepath.Join(filepath.Dir(conf), "ssh", "config"), user: filepath.Join(home, ".ssh", "config"),
	}, nil
}

const (
	blockMark = "# bireme attach " // and the process that wrote the block
	blockEnd  = "# end\n"
)

// add puts a host's lines into our file and sees that the user's includes it.
func (c *sshConfig) add(lines string) error {
	if err := c.change(func(blocks []string) []string {
		return append(blocks, blockMark+strconv.Itoa(os.Getpid())+"\n"+lines+blockEnd)
	}); err != nil {
		return err
	}
	return c.include()
}

// remove takes this process's lines out again.
func (c *sshConfig) remove() error {
	return c.change(func(blocks []string) []string { return blocks })
}

// change rewrites our file under a lock, without the blocks of this process and of those that are gone.
func (c *sshConfig) change(f func(blocks []string) []string) error {
	if err := os.MkdirAll(filepath.Dir(c.own), 0o700); err != nil {
		return err
	}
	lock, err := os.OpenFile(c.own+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close() // with it the lock
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("lock %s: %w", lock.Name(), err)
	}
	text, err := os.ReadFile(c.own)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var kept []string
	for _, b := range strings.SplitAfter(string(text), blockEnd) {
		if pid, ok := blockOwner(b); ok && pid != os.Getpid() && alive(pid) {
			kept = append(kept, b)
		}
	}
	return replaceFile(c.own, strings.Join(f(kept), ""), 0o600)
}

// blockOwner is the process that wrote a block.
func blockOwner(block string) (int, bool) {
	line, _, _ := strings.Cut(strings.TrimLeft(block, "\n"), "\n")
	pid, err := strconv.Atoi(strings.TrimPrefix(line, blockMark))
	return pid, err == nil && strings.HasPrefix(line, blockMark) && strings.HasSuffix(block, blockEnd)
}

func alive(pid int) bool {
	err := syscall.Kill(pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}

// include puts the line that includes our file at the beginning of the user's, if it is not in it.
func (c *sshConfig) include() error {
	line := `Include "` + c.own + `"` + "\n"
	path := c.user
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real // a link of the user's stays one
	}
	mode := fs.FileMode(0o600)
	text, err := os.ReadFile(path)
	switch st, serr := os.Stat(path); {
	case errors.Is(err, fs.ErrNotExist):
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
	case err != nil:
		return err
	case serr == nil:
		mode = st.Mode().Perm()
	}
	for have := range strings.Lines(string(text)) {
		if strings.TrimSpace(have) == strings.TrimSpace(line) {
			return nil
		}
	}
	return replaceFile(path, line+string(text), mode)
}

// replaceFile writes a file so that it is there whole, before and after.
func replaceFile(path, text string, mode fs.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".bireme-")
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Chmod(mode), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
