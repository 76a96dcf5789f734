package slurmdb

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/core"
)

// usageIn finds one resource in "1=20,2=4096,…" of a step's usage; 0 if it is not there.
func usageIn(text string, id int64) int64 {
	for item := range strings.SplitSeq(text, ",") {
		key, val, _ := strings.Cut(item, "=")
		if n, err := strconv.ParseInt(key, 10, 64); err == nil && n == id {
			v, err := strconv.ParseUint(val, 10, 64)
			if err != nil || v > math.MaxInt64 {
				return 0
			}
			return int64(v)
		}
	}
	return 0
}

// payer is a user in an account.
type payer struct {
	project core.ProjectName
	user    core.UserName
}

// Ledger adds up what users used, decayed to one moment.
type Ledger struct {
	db       *Database
	now      int64   // seconds
	halfLife float64 // seconds; 0: usage stays
	spent    map[payer]map[string]float64
}

// NewLedger adds up the usage that slurmdbd had summed up by hours, days and months. Where several of these tables have
// a time, the finest counts; older rows of the finer ones may have been purged.
func (db *Database) NewLedger(now core.Time, halfLife core.Seconds) *Ledger {
	l := &Ledger{db: db, now: int64(now) / 1e6, halfLife: float64(halfLife), spent: map[payer]map[string]float64{}}
	const hour, day, month = 3600, 24 * 3600, 30 * 24 * 3600
	widths := [...]int64{hour, day, month}
	until := int64(math.MaxInt64) // rows of coarser tables count up to here
	for i, rows := range db.usage {
		from := until
		for _, u := range rows {
			if u.at < from {
				from = u.at
			}
		}
		if i+1 < len(db.usage) { // not in the midst of a row of the next table
			from = nextStart(db.usage[i+1], from)
		}
		for _, u := range rows {
			if u.at >= from && u.at < until {
				l.add(u.assoc, db.tres[u.tres], float64(u.seconds), u.at+widths[i]/2)
			}
		}
		until = min(until, from)
	}
	return l
}

// nextStart is the first time at or after from at which a row of a coarser table begins; from itself if there is none.
func nextStart(rows []usageRow, from int64) int64 {
	best := int64(math.MaxInt64)
	for _, u := range rows {
		if u.at >= from && u.at < best {
			best = u.at
		}
	}
	if best == math.MaxInt64 {
		return from
	}
	for _, u := range rows { // without rows before it, nothing is counted twice
		if u.at < from {
			return best
		}
	}
	return from
}

func (l *Ledger) add(assoc int64, tres string, seconds float64, at int64) {
	a := l.db.associations[assoc]
	if a == nil || a.user == "" || a.account == rootAccount || tres == "" || seconds <= 0 {
		return
	}
	if l.halfLife > 0 && l.now > at {
		seconds *= math.Exp2(-float64(l.now-at) / l.halfLife)
	}
	k := payer{core.ProjectName(a.account), core.UserName(a.user)}
	if l.spent[k] == nil {
		l.spent[k] = map[string]float64{}
	}
	l.spent[k][tres] += seconds
}

// job adds what a job used after slurmdbd had last summed up.
func (l *Ledger) job(assoc int64, tres core.TRES, qos core.QOSName, start, end int64) {
	start = max(start, l.db.rolled)
	if start >= end {
		return
	}
	factor := 1.0
	if f, ok := l.db.factors[qos]; ok {
		factor = f
	}
	for _, a := range tres {
		l.add(assoc, a.Name, float64(a.Count)*float64(end-start)*factor, end)
	}
}

// Spent lists it by project and user. What is less than a second of one CPU is left out.
func (l *Ledger) Spent() []core.Spent {
	var out []core.Spent
	for k, amounts := range l.spent {
		s := core.Spent{Project: k.project, User: k.user, At: core.Time(l.now) * 1e6, Raw: amounts["billing"]}
		if s.Raw == 0 {
			s.Raw = amounts["cpu"] // a database of before there was billing
		}
		if s.Raw < 1 {
			continue
		}
		for name, seconds := range amounts {
			s.TRES = append(s.TRES, core.UnitSeconds{Name: name, Seconds: seconds})
		}
		slices.SortFunc(s.TRES, func(a, b core.UnitSeconds) int { return cmp.Compare(a.Name, b.Name) })
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b core.Spent) int {
		return cmp.Or(cmp.Compare(a.Project, b.Project), cmp.Compare(a.User, b.User))
	})
	return out
}
