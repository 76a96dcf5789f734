package policy

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"bireme.dev/bireme/internal/core"
)

// Decay is what is left of usage after some time. Slurm's first-order form of the half-life is kept, so that the
// figures agree to the last digit: each second keeps 1 - 0.693/halfLife. No half-life keeps everything.
func Decay(halfLife core.Seconds, passed time.Duration) float64 {
	if halfLife <= 0 || halfLife == core.Forever || passed <= 0 {
		return 1
	}
	if halfLife == 1 {
		halfLife = 2 // a second keeps more than nothing
	}
	return math.Pow(1-0.693/float64(halfLife), passed.Seconds())
}

// Usage is what an association or a QOS has used, decayed. Times are seconds.
type Usage struct {
	Raw  float64   // billing × seconds × usage factor
	Wall float64   // seconds of jobs
	TRES []Used    // sorted by name
	At   core.Time // decayed up to here
}

// Used is so many unit-seconds of a resource.
type Used struct {
	Name    string
	Seconds float64
}

// Add adds what others used by the same moment.
func (u *Usage) Add(v Usage) {
	u.Raw += v.Raw
	u.Wall += v.Wall
	u.At = max(u.At, v.At)
	for _, t := range v.TRES {
		i, ok := slices.BinarySearchFunc(u.TRES, t.Name, func(x Used, n string) int { return cmp.Compare(x.Name, n) })
		if !ok {
			u.TRES = slices.Insert(u.TRES, i, Used{Name: t.Name})
		}
		u.TRES[i].Seconds += t.Seconds
	}
}

// Minutes is the usage of a resource in minutes, in whole ones.
func (u *Usage) Minutes(name string) int64 {
	for i := range u.TRES {
		if u.TRES[i].Name == name {
			return int64(u.TRES[i].Seconds / 60)
		}
	}
	return 0
}

// ResetPeriod is how often usage that does not decay starts again.
type ResetPeriod uint8

// The periods; they turn in UTC, weeks on Sunday.
const (
	ResetNone ResetPeriod = iota
	ResetNow
	ResetDaily
	ResetWeekly
	ResetMonthly
	ResetQuarterly
	ResetYearly
)

// ParseResetPeriod reads none, now, daily, weekly, monthly, quarterly or yearly.
func ParseResetPeriod(text string) (ResetPeriod, error) {
	for i, name := range []string{"none", "now", "daily", "weekly", "monthly", "quarterly", "yearly"} {
		if strings.EqualFold(text, name) {
			return ResetPeriod(i), nil
		}
	}
	return 0, fmt.Errorf("%q is not one of none, now, daily, weekly, monthly, quarterly, yearly", text)
}

// Began is when the period that now falls into began; 0 if usage is never reset.
func (p ResetPeriod) Began(now core.Time) core.Time {
	t := now.Go().UTC()
	y, m, d := t.Date()
	switch p {
	case ResetDaily:
	case ResetWeekly:
		d -= int(t.Weekday())
	case ResetMonthly:
		d = 1
	case ResetQuarterly:
		m, d = (m-1)/3*3+1, 1
	case ResetYearly:
		m, d = 1, 1
	default:
		return 0
	}
	return core.At(time.Date(y, m, d, 0, 0, 0, 0, time.UTC))
}
