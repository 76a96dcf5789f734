package call

import (
	"time"

	"bireme.dev/bireme/internal/core"
)

// storedOverhead is about what the store takes for a record beside the texts that come with it.
const storedOverhead = 1 << 10

// Keep counts bytes that the store will keep for a caller: those of a job's texts stay for as long as its history, so
// that a loop of submissions that are canceled at once would fill the disk. What is refused later, or was stored
// before, is given back by Unkeep. Administrators are not limited.
func (a *Base) Keep(who *Caller, n int64) error {
	if who.Admin {
		return nil
	}
	set := a.Settings()
	limits := &set.Limits
	if dir := set.StoreDir(); dir != "" && a.disk.Low(dir, int64(limits.MinFreeDisk)/4, n) {
		return core.Errorf(core.Unavailable, "the disk of the server is nearly full (less than a quarter of "+
			"limits.min_free_disk, %s, is free): it takes nothing new until an administrator makes room", limits.MinFreeDisk).
			Because("disk_full")
	}
	if most := int64(limits.StoredPerDay); !a.stored.Spend(string(who.User), n+storedOverhead, most, time.Now()) {
		return core.Errorf(core.Exhausted, "user %s has had %s of scripts, environments, files and records of jobs stored, "+
			"which is all there may be in a day (limits.stored_per_day in the server's settings)", who.User,
			limits.StoredPerDay).Because("limit_stored_per_day")
	}
	return nil
}

// Unkeep gives back what Keep has counted.
func (a *Base) Unkeep(who *Caller, n int64) {
	if !who.Admin {
		a.stored.Spend(string(who.User), -n-storedOverhead, int64(a.Settings().Limits.StoredPerDay), time.Now())
	}
}
