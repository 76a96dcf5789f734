package step

import (
	"fmt"
	"os/user"
	"strconv"
	"sync"
	"time"

	"bireme.dev/bireme/internal/wire"
)

// groupCache remembers users' supplementary groups for a short while.
type groupCache struct {
	mu   sync.Mutex
	list map[account]cachedGroups
}

// account is what groups depend on; names are for people.
type account struct{ uid, gid uint32 }

type cachedGroups struct {
	groups []uint32
	until  time.Duration // boottime
}

const (
	groupsAge   = 30 * time.Second
	maxAccounts = 4096
)

// supplementary gives the groups of a user: those of the launch, else those this node knows.
func (k *Keeper) supplementary(id wire.Identity) ([]uint32, error) {
	if len(id.Groups) > 0 {
		return id.Groups, nil
	}
	if !k.root || id.UID == 0 {
		return nil, nil
	}
	who := account{id.UID, id.GID}
	k.groups.mu.Lock()
	defer k.groups.mu.Unlock()
	if c, ok := k.groups.list[who]; ok && c.until > boottime() {
		return c.groups, nil
	}
	groups := []uint32{id.GID}
	u, err := user.LookupId(strconv.FormatUint(uint64(id.UID), 10))
	if err == nil {
		ids, err := u.GroupIds()
		if err != nil {
			return nil, fmt.Errorf("groups of %s: %w", nameOr(id.Name, id.UID), err)
		}
		for _, g := range ids {
			n, err := strconv.ParseUint(g, 10, 32)
			if err == nil && uint32(n) != id.GID {
				groups = append(groups, uint32(n))
			}
		}
	}
	// A uid without a name on this node has its own group and no more.
	if k.groups.list == nil || len(k.groups.list) > maxAccounts {
		k.groups.list = map[account]cachedGroups{}
	}
	k.groups.list[who] = cachedGroups{groups: groups, until: boottime() + groupsAge}
	return groups, nil
}

// homeOf gives a user's home as this node knows it, or the root for one it does not know.
func homeOf(uid uint32) string {
	u, err := user.LookupId(strconv.FormatUint(uint64(uid), 10))
	if err != nil || u.HomeDir == "" {
		return "/"
	}
	return u.HomeDir
}
