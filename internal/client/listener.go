package client

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// overflowUID is what the kernel says for users that a user namespace does not map.
const overflowUID = 65534

// untrustedError says that somebody else listens where a server should.
type untrustedError struct{ text string }

func (e *untrustedError) Error() string { return e.text }

// checkListener refuses a socket that is listened on by somebody who is neither root nor the caller nor the one whom
// the socket's path belongs to. While a server is away anybody could wait there for scripts, environments and tokens.
func checkListener(path string, uid uint32) error {
	return listenerAt(path, uid, uint32(os.Geteuid()))
}

func listenerAt(path string, uid, self uint32) error {
	if uid == 0 || uid == self {
		return nil
	}
	own, err := pathOwner(path, self)
	switch {
	case err != nil:
		return &untrustedError{fmt.Sprintf("%s is listened on by %s, and %v: nothing was sent", path, userText(uid), err)}
	case own == uid:
		return nil
	}
	return &untrustedError{fmt.Sprintf(
		"%s is listened on by %s, who is neither root nor you nor the owner of its folder: nothing was sent", path,
		userText(uid))}
}

func userText(uid uint32) string { return "user " + strconv.FormatUint(uint64(uid), 10) }

// CheckFolder refuses a directory that somebody but root and the caller made or may have made, or may write to: what
// lies there would be taken for the caller's own, settings and links to other files included.
func CheckFolder(dir string) error { return folderOf(dir, uint32(os.Geteuid())) }

func folderOf(dir string, self uint32) error {
	owner, mode, err := folderOwner(dir, self)
	switch {
	case err != nil:
		return err
	case owner != 0 && owner != self:
		return fmt.Errorf("it belongs to %s", userText(owner))
	case mode&0o002 != 0:
		return errors.New("every user may write to it")
	}
	return nil
}

// pathOwner returns the owner of the directory a socket is in, if nobody but root, the caller and that owner can put
// something else in its place.
func pathOwner(path string, self uint32) (uint32, error) {
	owner, mode, err := folderOwner(filepath.Dir(path), self)
	if err == nil && mode&0o022 != 0 {
		return 0, fmt.Errorf("others may write to %s", filepath.Dir(path))
	}
	return owner, err
}

// folderOwner returns a directory's owner and mode, if nobody but root, the caller and that owner can put something
// else in its place. What is in a directory that others may write to must be root's or the caller's own.
func folderOwner(path string, self uint32) (owner uint32, mode fs.FileMode, err error) {
	path, err = filepath.Abs(path)
	if err != nil {
		return 0, 0, err
	}
	dir, rest := "/", strings.Split(path, "/")
	var links int
	for i := -1; i < len(rest); i++ {
		if i >= 0 && rest[i] == "" {
			continue
		}
		next := dir
		if i >= 0 {
			next = filepath.Join(dir, rest[i])
		}
		info, err := os.Lstat(next)
		if err != nil {
			return 0, 0, err
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		if !ok {
			return 0, 0, errors.New("its folders' owners are not known here")
		}
		of := st.Uid
		if of == overflowUID && owner == 0 && mappedRoot() {
			of = 0 // root outside of this user namespace
		}
		if mode&0o022 != 0 && of != 0 && of != self {
			return 0, 0, fmt.Errorf("%s, which anybody could have made, is of %s", next, userText(of))
		}
		if of != 0 && of != self && owner != 0 && owner != self && owner != of {
			return 0, 0, fmt.Errorf("%s is of %s and lies in a folder of %s", next, userText(of), userText(owner))
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			if links++; links > 20 {
				return 0, 0, errors.New("its path has too many links")
			}
			to, err := os.Readlink(next)
			if err != nil {
				return 0, 0, err
			}
			if filepath.IsAbs(to) {
				dir, owner, mode = "/", 0, 0
			}
			rest = append(strings.Split(filepath.Clean(to), "/"), rest[i+1:]...)
			i = -1
			continue
		}
		dir, owner, mode = next, of, info.Mode().Perm()
	}
	return owner, mode, nil
}

// mappedRoot reports whether this process is in a user namespace where root of the machine is nobody.
func mappedRoot() bool {
	text, err := os.ReadFile("/proc/self/uid_map")
	f := strings.Fields(string(text))
	return err == nil && !(len(f) == 3 && f[0] == "0" && f[1] == "0")
}
