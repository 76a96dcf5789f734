package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"bireme.dev/bireme/internal/cli/app"
	"bireme.dev/bireme/internal/core"
)

func (a *App) linksCommand() *cobra.Command {
	var remove bool
	var man string
	c := &cobra.Command{
		Use: "links DIR", Short: "make links under the names of Slurm's commands", Args: cobra.ExactArgs(1),
		Long: "Make links in DIR under the names of Slurm's commands, or remove them. They lead to bireme-slurm, " +
			"which is nothing but\nthose commands, or to this program where that does not lie beside it.\nNothing " +
			"that is not such a link is touched: if a name is taken, no link is made.\nA link named dstack leads to this " +
			"program, which then takes the options of dstack's CLI; where that is installed\nit stays.",
		RunE: func(_ *cobra.Command, args []string) error {
			if remove {
				return errors.Join(a.removeLinks(args[0]), a.removePages(man))
			}
			if err := a.makeLinks(args[0]); err != nil {
				return err
			}
			return a.writePages(man)
		},
	}
	c.Flags().BoolVar(&remove, "remove", false, "remove the links instead")
	c.Flags().StringVar(&man, "man", "", "also write their manual pages to this folder, such as "+
		"/usr/local/share/man/man1, or remove them there")
	return c
}

// slurmMain is the program with nothing but the Slurm commands; it starts sooner than this one.
const slurmMain = "bireme-slurm"

// targets are the programs that links may lead to, found through links of their own; new ones lead to the first. That
// is slurmMain where it is next to this program, which does for it elsewhere.
func (a *App) targets() ([]string, error) {
	exe, err := a.Exe()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	if real, err := filepath.EvalSymlinks(exe); err == nil {
		exe = real
	}
	if exe, err = filepath.Abs(exe); err != nil {
		return nil, err
	}
	own := filepath.Join(filepath.Dir(exe), slurmMain)
	if real, err := filepath.EvalSymlinks(own); err == nil {
		return []string{real, exe}, nil
	}
	return []string{exe, own}, nil
}

func (a *App) makeLinks(dir string) error {
	targets, err := a.targets()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	var missing, old, foreign []string
	for _, name := range a.Links {
		path := filepath.Join(dir, name)
		switch to, err := leadsTo(path); {
		case errors.Is(err, fs.ErrNotExist):
			missing = append(missing, path)
		case err != nil:
			return err
		case to == targets[1]:
			old = append(old, path)
		case to != targets[0]:
			foreign = append(foreign, name)
		}
	}
	if len(foreign) > 0 {
		return core.Errorf(core.Conflict, "%s contains files that are not ours: %s; no link was made; move them away "+
			"or choose another directory", dir, strings.Join(foreign, ", "))
	}
	for _, path := range old {
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	for _, path := range append(missing, old...) {
		if err := os.Symlink(targets[0], path); err != nil {
			return err
		}
	}
	made, there := len(missing)+len(old), len(a.Links)-len(missing)-len(old)
	switch done, err := a.dstackLink(dir, false); {
	case err != nil:
		return err
	case done == linkMade:
		made++
	case done == linkKept:
		there++
	}
	a.Note("%s: %s created, %d were already there", dir, app.Plural(made, "link"), there)
	return nil
}

func (a *App) removeLinks(dir string) error {
	targets, err := a.targets()
	if err != nil {
		return err
	}
	if _, err := os.Stat(dir); err != nil {
		return core.Errorf(core.NotFound, "%s: %s", dir, errors.Unwrap(err))
	}
	removed := 0
	for _, name := range a.Links {
		path := filepath.Join(dir, name)
		if to, err := leadsTo(path); err != nil || !slices.Contains(targets, to) {
			continue // not there, or somebody else's
		}
		if err := os.Remove(path); err != nil {
			return err
		}
		removed++
	}
	done, err := a.dstackLink(dir, true)
	if err != nil {
		return err
	}
	if done == linkRemoved {
		removed++
	}
	a.Note("%s: %s removed", dir, app.Plural(removed, "link"))
	return nil
}

// leadsTo is where a link leads in the end, and "" for what is no link.
func leadsTo(path string) (string, error) {
	info, err := os.Lstat(path)
	if err != nil || info.Mode()&fs.ModeSymlink == 0 {
		return "", err
	}
	to, err := os.Readlink(path)
	if err != nil {
		return "", err
	}
	if !filepath.IsAbs(to) {
		to = filepath.Join(filepath.Dir(path), to)
	}
	if real, err := filepath.EvalSymlinks(to); err == nil {
		to = real
	}
	return filepath.Clean(to), nil
}

// dstackName is the link under which this program takes dstack's options.
const dstackName = "dstack"

// What became of a link.
type linkDone int

const (
	linkNone linkDone = iota // there is none, or it is another program's
	linkMade
	linkKept
	linkRemoved
)

// dstackLink makes or removes the link named dstack. One that is there and not ours is dstack's own CLI, and stays.
func (a *App) dstackLink(dir string, remove bool) (linkDone, error) {
	targets, err := a.targets()
	if err != nil {
		return linkNone, err
	}
	exe := targets[len(targets)-1]
	if filepath.Base(exe) == slurmMain {
		exe = targets[0]
	}
	path := filepath.Join(dir, dstackName)
	to, err := leadsTo(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && remove:
		return linkNone, nil
	case errors.Is(err, fs.ErrNotExist):
		return linkMade, os.Symlink(exe, path)
	case err != nil:
		return linkNone, err
	case to != exe && !remove:
		a.Note("%s is another program's and stays", path)
		return linkNone, nil
	case to == exe && remove:
		return linkRemoved, os.Remove(path)
	case to != exe:
		return linkNone, nil
	}
	return linkKept, nil
}
