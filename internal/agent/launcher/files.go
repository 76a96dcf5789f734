package launcher

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"bireme.dev/bireme/internal/account"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/wire"
	"bireme.dev/bireme/internal/wire/parcel"
)

// stage lays the files of a run out beside its container, as its user, and mounts each of them where it goes. They go
// with the job's temporary folder.
func (x *launcher) stage() error {
	if len(x.l.Files) == 0 || x.c.Join {
		return nil
	}
	if x.c.Maker == wire.MakerOCI {
		return errors.New("files: a bundle takes none; they need an image")
	}
	base := x.tmp()
	if base == "" {
		base = x.c.Run
	}
	dir, err := os.MkdirTemp(base, "files-")
	if err != nil {
		return fmt.Errorf("files: %w", err)
	}
	list, err := parcel.Stage(x.l.Files, dir)
	if err != nil {
		return fmt.Errorf("files: %w", err)
	}
	home := x.home()
	for _, m := range list {
		to := m.Path
		if parcel.IsRelative(to) {
			if x.c.WorkDir == "" { // where such containers begin, said so that all makers do
				x.c.WorkDir = home
			}
			to = filepath.Join(x.c.WorkDir, to)
		}
		if rest, ok := strings.CutPrefix(to, "~"); ok {
			to = filepath.Join(home, rest)
		}
		x.files = append(x.files, core.Mount{Source: m.Local, Target: to})
	}
	return nil
}

// home is the user's home, which has that path inside, too.
func (x *launcher) home() string {
	for _, e := range x.env {
		if v, ok := strings.CutPrefix(e, "HOME="); ok && filepath.IsAbs(v) {
			return v
		}
	}
	var book account.Book
	if u, err := book.ByUID(x.l.Identity.UID); err == nil && filepath.IsAbs(u.Home) {
		return u.Home
	}
	return "/"
}
