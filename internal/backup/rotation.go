package backup

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	namePrefix = "bireme-"
	nameSuffix = ".backup"
	nameTime   = "20060102T150405Z"
)

// Name is the name of a regular backup that is made at a time.
func Name(at time.Time) string { return namePrefix + at.UTC().Format(nameTime) + nameSuffix }

// madeAt is when the regular backup of a name was made.
func madeAt(name string) (time.Time, bool) {
	text, ok := strings.CutPrefix(name, namePrefix)
	if !ok {
		return time.Time{}, false
	}
	text, ok = strings.CutSuffix(text, nameSuffix)
	if !ok {
		return time.Time{}, false
	}
	at, err := time.Parse(nameTime, text)
	return at, err == nil
}

// Latest is when the newest regular backup in a folder was made; zero: there is none.
func Latest(folder string) (time.Time, error) {
	names, err := regular(folder)
	if err != nil || len(names) == 0 {
		return time.Time{}, err
	}
	at, _ := madeAt(names[len(names)-1])
	return at, nil
}

// Prune removes the oldest regular backups in a folder until keep are left. Other files stay.
func Prune(folder string, keep int) (gone []string, err error) {
	names, err := regular(folder)
	if err != nil {
		return nil, err
	}
	for len(names) > keep {
		if rerr := os.Remove(filepath.Join(folder, names[0])); rerr != nil {
			err = errors.Join(err, rerr)
		} else {
			gone = append(gone, names[0])
		}
		names = names[1:]
	}
	return gone, err
}

// regular lists regular backups, the oldest first.
func regular(folder string) (names []string, err error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if _, ok := madeAt(e.Name()); ok && e.Type().IsRegular() {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}
