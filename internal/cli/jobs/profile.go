package jobs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"bireme.dev/bireme/internal/cli/app"
	"bireme.dev/bireme/internal/dstack/config"
)

// FindProfile returns the profile of a run: the one that --profile (name) or DSTACK_PROFILE names, else the default one
// of .dstack/profiles.yml in this directory or the home. Where there is none, or none is wanted, it is an empty one
// under the name that the stock client gives it, so that a run is the same by whichever client it is applied.
func FindProfile(a *app.App, name string, none bool) (*config.Profile, error) {
	if name == "" && !none {
		if v, _ := a.Lookup("DSTACK_NO_PROFILE"); v != "" {
			none, _ = strconv.ParseBool(v) // what is no boolean means no
		}
		name, _ = a.Lookup("DSTACK_PROFILE")
	}
	if none {
		return &config.Profile{Name: "no-profile"}, nil
	}
	file, all, err := profiles(a)
	if err != nil {
		return nil, err
	}
	for i := range all {
		if p := &all[i]; name != "" && p.Name == name || name == "" && p.Default {
			return p, nil
		}
	}
	if name != "" {
		if file == "" {
			file = ".dstack/profiles.yml"
		}
		return nil, app.Usagef("--profile %s: %s has no such profile", name, file)
	}
	return &config.Profile{Name: "default"}, nil
}

// profiles reads the first profiles.yml that there is.
func profiles(a *app.App) (string, []config.Profile, error) {
	dirs := []string{".dstack"}
	if home, ok := a.Lookup("HOME"); ok && home != "" {
		dirs = append(dirs, filepath.Join(home, ".dstack"))
	}
	for i, dir := range dirs {
		for _, base := range []string{"profiles.yml", "profiles.yaml"} {
			file := filepath.Join(dir, base)
			src, err := os.ReadFile(file)
			if errors.Is(err, fs.ErrNotExist) || i > 0 && errors.Is(err, fs.ErrPermission) { // HOME may be another user's
				continue
			}
			if err != nil {
				return "", nil, err
			}
			list, err := config.ReadProfiles(src)
			if err != nil {
				return "", nil, InFile(err, file)
			}
			return file, list.Profiles, nil
		}
	}
	return "", nil, nil
}
