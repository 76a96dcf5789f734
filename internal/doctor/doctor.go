package doctor

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
)

// Level says how bad a finding is.
type Level string

// The levels of findings.
const (
	OK   Level = "ok"
	Warn Level = "warn" // works, but not forever
	Fail Level = "fail" // a part does not work
)

// Finding is one thing that was looked at.
type Finding struct {
	Check  string `json:"check"`
	Level  Level  `json:"level"`
	Text   string `json:"text"`
	Remedy string `json:"remedy,omitempty"`
}

// Report is what was found, in the order of looking.
type Report struct {
	Findings []Finding `json:"findings"`
}

func (r *Report) add(level Level, check, remedy, format string, args ...any) {
	r.Findings = append(r.Findings, Finding{check, level, fmt.Sprintf(format, args...), remedy})
}

// Error notes that something could not be looked at, or is refused.
func (r *Report) Error(check string, err error, remedy string) { r.add(Fail, check, remedy, "%v", err) }

// Fine notes what is well.
func (r *Report) Fine(check, format string, args ...any) { r.add(OK, check, "", format, args...) }

// Worst is the highest level of all findings.
func (r *Report) Worst() Level {
	worst := OK
	for _, f := range r.Findings {
		if f.Level == Fail || f.Level == Warn && worst == OK {
			worst = f.Level
		}
	}
	return worst
}

// Write prints the findings, what to do below each that is not well.
func (r *Report) Write(w io.Writer, asJSON bool) error {
	if asJSON {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(r)
	}
	for _, f := range r.Findings {
		// What nodes and databases say is shown without its control characters.
		if _, err := fmt.Fprintf(w, "%-4s  %-12s %s\n", f.Level, f.Check, plain(f.Text)); err != nil {
			return err
		}
		if f.Remedy != "" && f.Level != OK {
			if _, err := fmt.Fprintf(w, "      %-12s -> %s\n", "", plain(f.Remedy)); err != nil {
				return err
			}
		}
	}
	return nil
}

func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
}

// Store is what a database says of itself.
type Store struct {
	Name          string // file, or "PostgreSQL"
	Shared        bool   // by several servers, one of which leads
	Schema, Known int64
	Oldest        int64 // the oldest schema whose programs may write
	Seq, NextJob  int64
	Holder        string
	Left          time.Duration // until the lease ends
	Clock         time.Time     // of the database, read at Read
	Read          time.Time
	Faults        []string
}

// Limits of clocks that differ.
const (
	skewWarn = 2 * time.Second
	skewFail = time.Minute
)

// Store judges the database.
func (r *Report) Store(s Store) {
	switch {
	case len(s.Faults) > 0:
		r.add(Fail, "store", "stop the server, keep the file, put the newest backup back: biremed restore (docs/backup.md)",
			"%s is damaged: %s", s.Name, strings.Join(s.Faults, "; "))
		return
	case s.Schema == 0:
		r.add(Warn, "store", "start the server once, or restore a backup", "%s is empty: no server has used it", s.Name)
		return
	case s.Oldest > s.Known:
		r.add(Fail, "store", "use the newer version here as well", "%s has schema %d, this program knows up to %d", s.Name,
			s.Schema, s.Known)
	case s.Schema > s.Known:
		r.add(
			Warn, "store", "use the newer version here as well",
			"%s has schema %d of a newer version, which this one (%d) may write", s.Name, s.Schema, s.Known,
		)
	case s.Schema < s.Known:
		r.add(
			Warn,
			"store",
			"start the server of this version: it migrates the database",
			"%s has schema %d, this program brings "+
				"it to %d",
			s.Name,
			s.Schema,
			s.Known,
		)
	default:
		r.Fine(
			"store",
			"%s: no damage found, schema %d, event %d, the next job gets id %d",
			s.Name,
			s.Schema,
			s.Seq,
			s.NextJob,
		)
	}
	if !s.Shared {
		return // one server holds the file as long as it runs; the lease says nothing
	}
	if s.Left > 0 {
		r.Fine("lead", "%s leads", leader(s.Holder))
	} else {
		r.add(Fail, "lead", "start a server: systemctl start biremed-server", "nobody leads: the lease of %s ended %s ago",
			leader(s.Holder), rounded(-s.Left))
	}
	r.clock("the database's clock", s.Clock.Sub(s.Read))
}

// leader is the host of a lease's holder, which holds more words.
func leader(holder string) string {
	if host, _, ok := strings.Cut(holder, ":"); ok {
		return host
	}
	return holder
}

func (r *Report) clock(whose string, off time.Duration) {
	const remedy = "keep the clocks of all hosts by NTP"
	switch {
	case off.Abs() >= skewFail:
		r.add(Fail, "clock", remedy, "%s is off by %s", whose, rounded(off))
	case off.Abs() >= skewWarn:
		r.add(Warn, "clock", remedy, "%s is off by %s", whose, rounded(off))
	}
}

// Disk judges the room below a folder.
func (r *Report) Disk(folder string, free, least int64) {
	switch {
	case free < least:
		r.add(Fail, "disk", "make room, or the output of jobs stops, then the state", "%s has %s free, less than "+
			"limits.min_free_disk (%s)", folder, size(free), size(least))
	case free < 4*least:
		r.add(Warn, "disk", "make room soon", "%s has %s free; below %s output of jobs stops", folder, size(free),
			size(least))
	default:
		r.Fine("disk", "%s has %s free", folder, size(free))
	}
}

// size writes bytes in binary units.
func size(n int64) string {
	if n < int64(core.GiB) {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%.1f GiB", float64(n)/float64(core.GiB))
}

// Certificate judges until when one is good; renewed says that somebody renews it in time.
func (r *Report) Certificate(what string, until, now time.Time, renewed bool, remedy string) {
	left := until.Sub(now)
	soon := 90 * 24 * time.Hour
	if renewed {
		soon = 5 * 24 * time.Hour
	}
	switch {
	case left <= 0:
		r.add(Fail, "certificate", remedy, "%s ended %s ago", what, rounded(-left))
	case left < soon:
		r.add(Warn, "certificate", remedy, "%s ends in %s", what, rounded(left))
	default:
		r.Fine("certificate", "%s is good until %s", what, until.UTC().Format(time.DateOnly))
	}
}

// Server judges a server that answers.
func (r *Report) Server(c *client.Cluster, program string) {
	switch {
	case c.ReadOnly != "":
		r.add(
			Fail,
			"server",
			"mend that; the server goes on by itself then",
			"it answers, and cannot write: %s",
			c.ReadOnly,
		)
	case c.Version != program:
		r.add(
			Warn,
			"server",
			"restart it to run this version: systemctl restart biremed-server",
			"version %s runs, %s is installed",
			c.Version,
			program,
		)
	default:
		r.Fine("server", "cluster %s, version %s, answers", c.Name, c.Version)
	}
}

// Nodes judges nodes as the server shows them.
func (r *Report) Nodes(nodes []client.Node, server string, now time.Time) {
	var away, well int
	for i := range nodes {
		n := &nodes[i]
		name := string(n.Name)
		if !n.Connected {
			if strings.Contains(n.State, "POWER") || strings.Contains(n.State, "CLOUD") {
				continue
			}
			away++
			heard := "never heard of"
			if n.LastHeard != 0 {
				heard = "last heard of " + rounded(now.Sub(n.LastHeard.Go())) + " ago"
			}
			r.add(
				Fail,
				"node",
				"on "+name+": systemctl status biremed-agent, and whether it reaches the server's agent_listen",
				"%s is not connected, %s, state %s",
				name,
				heard,
				n.State,
			)
			continue
		}
		well++
		if n.Host.Version != "" && n.Host.Version != server {
			r.add(
				Warn,
				"node",
				"restart its agent with the server's version; jobs continue",
				"%s runs version %s, the server %s",
				name,
				n.Host.Version,
				server,
			)
		}
		if n.Warning != "" {
			r.add(Warn, "node", "", "%s: %s", name, n.Warning)
		}
		r.clock("the clock of node "+name, time.Duration(n.Skew)*time.Second)
	}
	switch {
	case len(nodes) == 0:
		r.add(Warn, "nodes", "biremed setup --nodes prints how one joins", "there are none")
	default:
		r.Fine("nodes", "%d connected, %d not", well, away)
	}
}

func rounded(d time.Duration) string {
	switch {
	case d.Abs() >= 48*time.Hour:
		return fmt.Sprintf("%d days", int(d.Hours()/24))
	case d.Abs() >= time.Minute:
		return d.Round(time.Minute).String()
	default:
		return d.Round(100 * time.Millisecond).String()
	}
}
