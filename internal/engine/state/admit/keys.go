package admit

import (
	"cmp"
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state/conf"
)

// Keys remembers the last submit keys: the same key gives the same job.
type Keys struct {
	cfg  *conf.Config
	uses map[string]KeyUse
	ring []string // oldest first, to forget
}

// NewKeys makes keys that begin with those that are stored.
func NewKeys(cfg *conf.Config, stored []core.SubmitKey) *Keys {
	k := &Keys{cfg: cfg, uses: map[string]KeyUse{}}
	byAge := func(a, b core.SubmitKey) int { return cmp.Compare(a.Job, b.Job) }
	if !slices.IsSortedFunc(stored, byAge) {
		slices.SortStableFunc(stored, byAge)
	}
	for _, x := range stored {
		k.Remember(x.Key, x.Job, x.User)
	}
	return k
}

// Find finds what a key was used for.
func (k *Keys) Find(key string) (use KeyUse, ok bool) {
	use, ok = k.uses[key]
	return use, ok
}

// All is what keys were used for, to read.
func (k *Keys) All() map[string]KeyUse { return k.uses }

// KeyUse is what a submit key was used for.
type KeyUse struct {
	Job  core.JobID
	User core.UserName
}

// Remember notes what a key was used for.
func (k *Keys) Remember(key string, id core.JobID, user core.UserName) {
	k.uses[key] = KeyUse{Job: id, User: user}
	k.ring = append(k.ring, key)
	if len(k.ring) > k.cfg.KeyWindow {
		delete(k.uses, k.ring[0])
		k.ring = k.ring[1:]
	}
}
