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

// Decay is what is left of usage after some time. Slurm's first-order form of the half-life is kept, so that the figures
// agree to the last digit: each second keeps 1 - 0.693/halfLife. No half-life keeps everything.
func Decay(halfLife core.Seconds, passed time.Duration) float64 {
	if halfLife <= 0 || halfLife == core.Forever || passed <= 0 {
		return 1
	}
	if halfLife == 1 {
		halfLife = 2 // a second keeps more than nothing
	}
	return math.Pow(1-0.693/float64(halfLife), passed.Seconds())
}

// Span is the time a job ran, as far as it is known.
type Span struct {
	Start core.Time
	End   core.Time    // 0: it runs still
	Limit core.Seconds // 0: none
}

// Within is how much of [from, to) falls into the job's run and its time limit: what one period charges for.
func (s Span) Within(from, to core.Time) time.Duration {
	end := to
	if s.End != 0 {
		end = min(end, s.End)
	}
	if s.Limit > 0 && s.Limit != core.Forever {
		end = min(end, s.Start.Add(s.Limit.Duration()))
	}
	return max(0, end.Sub(max(from, s.Start)))
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

// DecayTo brings u to a later moment.
func (u *Usage) DecayTo(now core.Time, halfLife core.Seconds) {
	if u.At != 0 && now > u.At {
		k := Decay(halfLife, now.Sub(u.At))
		u.Raw *= k
		u.Wall *= k
		for i := range u.TRES {
			u.TRES[i].Seconds *= k
		}
	}
	u.At = max(u.At, now)
}

// Charge adds what a job used in ran seconds of its run.
func (u *Usage) Charge(t TRES, billing int64, factor float64, ran time.Duration) {
	secs := ran.Seconds() * factor
	if secs <= 0 {
		return
	}
	u.Raw += float64(billing) * secs
	u.Wall += secs
	at := 0
	for _, a := range t { // both lists are sorted
		for at < len(u.TRES) && u.TRES[at].Name < a.Name {
			at++
		}
		if at == len(u.TRES) || u.TRES[at].Name != a.Name {
			u.TRES = append(u.TRES, Used{})
			copy(u.TRES[at+1:], u.TRES[at:])
			u.TRES[at] = Used{Name: a.Name}
		}
		u.TRES[at].Seconds += float64(a.Count) * secs
	}
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

// ResetPeriod is how often usage that does not decay starts anew.
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

// Due tells whether usage last reset at last starts anew at now.
func (p ResetPeriod) Due(last, now core.Time) bool {
	l, n := last.Go().UTC(), now.Go().UTC()
	switch p {
	case ResetNow:
		return last == 0
	case ResetDaily:
		return l.YearDay() != n.YearDay() || l.Year() != n.Year()
	case ResetWeekly:
		return now > last && n.Sub(sunday(l)) >= 7*24*time.Hour
	case ResetMonthly:
		return l.Month() != n.Month() || l.Year() != n.Year()
	case ResetQuarterly:
		return (l.Month()-1)/3 != (n.Month()-1)/3 || l.Year() != n.Year()
	case ResetYearly:
		return l.Year() != n.Year()
	}
	return false
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

// sunday is when t's week began.
func sunday(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day()-int(t.Weekday()), 0, 0, 0, 0, time.UTC)
}

// Grown is usage after some time in which rate was charged every second. What is charged decays from its own moment on,
// so it does not matter into how many steps the time is cut.
func Grown(raw float64, rate int64, halfLife core.Seconds, passed time.Duration) float64 {
	if passed <= 0 {
		return raw
	}
	if halfLife <= 0 || halfLife == core.Forever {
		return raw + float64(rate)*passed.Seconds()
	}
	left := Decay(halfLife, passed)
	return raw*left + float64(rate)*(1-left)/-math.Log1p(-0.693/float64(max(2, halfLife)))
}
