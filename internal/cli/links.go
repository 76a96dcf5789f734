package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"bireme.dev/bireme/internal/core"
)

func (a *App) linksCommand() *cobra.Command {
	var remove bool
	var man string
	c := &cobra.Command{
		Use: "links DIR", Short: "make links under the names of Slurm's commands", Args: cobra.ExactArgs(1),
		Long: "Make links to this program in DIR under the names of Slurm's commands, or remove them.\nNothing that is not such a link is touched: if a name is taken, no link is made.",
		RunE: func(_ *cobra.Command, args []string) error {
			if remove {
				return errors.Join(a.removeLinks(args[0]), a.removePages(man))
			}
			return errors.Join(a.makeLinks(args[0]), a.writePages(man))
		},
	}
	c.Flags().BoolVar(&remove, "remove", false, "remove the links instead")
	c.Flags().StringVar(&man, "man", "", "also write their manual pages to this folder, such as /usr/local/share/man/man1, or remove them there")
	return c
}

// target is the program that links lead to, found through links of its own.
func (a *App) target() (string, error) {
	exe, err := a.Exe()
	if err != nil {
		return "", fmt.Errorf("find this program: %w", err)
	}
	if real, err := filepath.EvalSymlinks(exe); err == nil {
		exe = real
	}
	return filepath.Abs(exe)
}

func (a *App) makeLinks(dir string) error {
	target, err := a.target()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	var missing, foreign []string
	for _, name := range a.Links {
		path := filepath.Join(dir, name)
		switch ours, err := isOurs(path, target); {
		case errors.Is(err, fs.ErrNotExist):
			missing = append(missing, path)
		case err != nil:
			return err
		case !ours:
			foreign = append(foreign, name)
		}
	}
	if len(foreign) > 0 {
		return core.Errorf(core.Conflict, "%s holds files that are not ours: %s; no link was made; move them away or choose another folder", dir, strings.Join(foreign, ", "))
	}
	for _, path := range missing {
		if err := os.Symlink(target, path); err != nil {
			return err
		}
	}
	a.note("%s: %s made, %d were there", dir, plural(len(missing), "link"), len(a.Links)-len(missing))
	return nil
}

func (a *App) removeLinks(dir string) error {
	target, err := a.target()
	if err != nil {
		return err
	}
	if _, err := os.Stat(dir); err != nil {
		return core.Errorf(core.NotFound, "%s: %s", dir, errors.Unwrap(err))
	}
	removed := 0
	for _, name := range a.Links {
		path := filepath.Join(dir, name)
		if ours, err := isOurs(path, target); err != nil || !ours {
			continue // not there, or somebody else's
		}
		if err := os.Remove(path); err != nil {
			return err
		}
		removed++
	}
	a.note("%s: %s removed", dir, plural(removed, "link"))
	return nil
}

// isOurs tells whether path is a link to target.
func isOurs(path, target string) (bool, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return false, err
	}
	if info.Mode()&fs.ModeSymlink == 0 {
		return false, nil
	}
	to, err := os.Readlink(path)
	if err != nil {
		return false, err
	}
	if !filepath.IsAbs(to) {
		to = filepath.Join(filepath.Dir(path), to)
	}
	if real, err := filepath.EvalSymlinks(to); err == nil {
		to = real
	}
	return filepath.Clean(to) == target, nil
}
