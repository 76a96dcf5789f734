package cli

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"bireme.dev/bireme/internal/cli/app"
)

// writePages writes the manual pages of the Slurm commands to dir; "" writes none.
func (a *App) writePages(dir string) error {
	if dir == "" {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	pages := a.Pages()
	for name, text := range pages {
		if err := os.WriteFile(filepath.Join(dir, name+".1"), []byte(text), 0o644); err != nil {
			return err
		}
	}
	a.Note("%s: %s written", dir, app.Plural(len(pages), "manual page"))
	return nil
}

// removePages removes those that are as writePages writes them; others stay.
func (a *App) removePages(dir string) error {
	if dir == "" {
		return nil
	}
	removed := 0
	for name, text := range a.Pages() {
		path := filepath.Join(dir, name+".1")
		switch have, err := os.ReadFile(path); {
		case errors.Is(err, fs.ErrNotExist), err == nil && string(have) != text:
			continue
		case err != nil:
			return err
		}
		if err := os.Remove(path); err != nil {
			return err
		}
		removed++
	}
	a.Note("%s: %s removed", dir, app.Plural(removed, "manual page"))
	return nil
}
