package account

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// User is an account that processes run as.
type User struct {
	Name     string
	UID, GID uint32
	Home     string
	Shell    string
	FullName string // of the person, as the account has it before its first comma
}

// Group is a group of accounts.
type Group struct {
	Name    string
	GID     uint32
	Members []string // those the group's own entry names; users that have it as their first group may be left out
}

// ErrUnknown says that no source knows the account. Any other error says that a source did not answer.
var ErrUnknown = errors.New("no such account")

// System is this machine's book.
var System = &Book{}

// ByName finds a user by name on this machine.
func ByName(name string) (*User, error) { return System.ByName(name) }

// ByUID finds a user by number on this machine.
func ByUID(uid uint32) (*User, error) { return System.ByUID(uid) }

// GroupByName finds a group by name on this machine.
func GroupByName(name string) (*Group, error) { return System.GroupByName(name) }

// GroupByGID finds a group by number on this machine.
func GroupByGID(gid uint32) (*Group, error) { return System.GroupByGID(gid) }

// Groups returns all groups of a user of this machine, its first group first.
func Groups(u *User) ([]uint32, error) { return System.Groups(u) }

// ByName finds a user by name.
func (b *Book) ByName(name string) (*User, error) {
	if !askable(name) {
		return nil, fmt.Errorf("user %q: %w", name, ErrUnknown)
	}
	return look(b, "passwd", "user "+name, name, parseUser, func(u *User) bool { return u.Name == name })
}

// ByUID finds a user by number.
func (b *Book) ByUID(uid uint32) (*User, error) {
	key := strconv.FormatUint(uint64(uid), 10)
	return look(b, "passwd", "uid "+key, key, parseUser, func(u *User) bool { return u.UID == uid })
}

// GroupByName finds a group by name.
func (b *Book) GroupByName(name string) (*Group, error) {
	if !askable(name) {
		return nil, fmt.Errorf("group %q: %w", name, ErrUnknown)
	}
	return look(b, "group", "group "+name, name, parseGroup, func(g *Group) bool { return g.Name == name })
}

// GroupByGID finds a group by number.
func (b *Book) GroupByGID(gid uint32) (*Group, error) {
	key := strconv.FormatUint(uint64(gid), 10)
	return look(b, "group", "gid "+key, key, parseGroup, func(g *Group) bool { return g.GID == gid })
}

// Groups returns all groups of a user, its first group first. A user of the files may be in groups of another source,
// too, which is asked where the machine's settings name one.
func (b *Book) Groups(u *User) ([]uint32, error) {
	if !askable(u.Name) {
		return []uint32{u.GID}, nil
	}
	return remembered(b, "groups of "+u.Name+" "+strconv.FormatUint(uint64(u.GID), 10), func() ([]uint32, error) {
		groups := []uint32{u.GID}
		err := scan(b.file("group"), func(line string) bool {
			if g := parseGroup(line); g != nil && slices.Contains(g.Members, u.Name) && !slices.Contains(groups, g.GID) {
				groups = append(groups, g.GID)
			}
			return true
		})
		if err != nil {
			return nil, fmt.Errorf("groups of %s: %w", u.Name, err)
		}
		if local, err := b.local(u.Name); err != nil {
			return nil, fmt.Errorf("groups of %s: %w", u.Name, err)
		} else if local && !b.elsewhere("initgroups", "group") {
			return groups, nil
		}
		out, err := b.getent("initgroups", u.Name)
		if errors.Is(err, ErrUnknown) {
			return groups, nil
		}
		if err != nil {
			return nil, fmt.Errorf("groups of %s: %w", u.Name, err)
		}
		words := strings.Fields(string(out))
		for _, w := range words[min(1, len(words)):] {
			if n, err := strconv.ParseUint(w, 10, 32); err == nil && !slices.Contains(groups, uint32(n)) {
				groups = append(groups, uint32(n))
			}
		}
		return groups, nil
	})
}

// local reports whether the files have a user.
func (b *Book) local(name string) (found bool, err error) {
	err = scan(b.file("passwd"), func(line string) bool {
		found = strings.HasPrefix(line, name+":")
		return !found
	})
	return found, err
}

// askable reports whether a name can be one: getent would read another as an option, or as several.
func askable(name string) bool {
	return name != "" && len(name) <= 256 && name[0] != '-' && !strings.ContainsAny(name, ":\x00\r\n")
}

func parseUser(line string) *User {
	f := strings.Split(line, ":")
	if len(f) < 7 || f[0] == "" {
		return nil
	}
	uid, err1 := strconv.ParseUint(f[2], 10, 32)
	gid, err2 := strconv.ParseUint(f[3], 10, 32)
	if err1 != nil || err2 != nil {
		return nil // a line of NIS (+name), or a broken one
	}
	full, _, _ := strings.Cut(f[4], ",")
	return &User{Name: f[0], UID: uint32(uid), GID: uint32(gid), Home: f[5], Shell: f[6], FullName: full}
}

func parseGroup(line string) *Group {
	f := strings.Split(line, ":")
	if len(f) < 4 || f[0] == "" {
		return nil
	}
	gid, err := strconv.ParseUint(f[2], 10, 32)
	if err != nil {
		return nil
	}
	g := &Group{Name: f[0], GID: uint32(gid)}
	for m := range strings.SplitSeq(f[3], ",") {
		if m = strings.TrimSpace(m); m != "" {
			g.Members = append(g.Members, m)
		}
	}
	return g
}
