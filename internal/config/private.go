package config

import (
	"fmt"
	"strings"
)

// Private is a set of the kinds of records that ordinary users see only as far as they are their own.
type Private uint16

// The kinds, by Slurm's words for PrivateData.
const (
	PrivateAccounts     Private = 1 << iota // projects, except for those one manages
	PrivateEvents                           // what happens to nodes
	PrivateJobs                             // jobs, steps and runs of others
	PrivateNodes                            // nodes and their state
	PrivatePartitions                       // partitions and their state
	PrivateReservations                     // advance reservations one cannot use
	PrivateUsage                            // what others have used
	PrivateUsers                            // other users, and their part in projects
)

// privateWords are the words in the order in which Slurm shows them.
var privateWords = []struct {
	word string
	bit  Private
}{
	{"accounts", PrivateAccounts},
	{"events", PrivateEvents},
	{"jobs", PrivateJobs},
	{"nodes", PrivateNodes},
	{"partitions", PrivatePartitions},
	{"reservations", PrivateReservations},
	{"usage", PrivateUsage},
	{"users", PrivateUsers},
}

// Has reports whether a kind is private.
func (p Private) Has(kind Private) bool { return p&kind != 0 }

// String writes the set as PrivateData has it.
func (p Private) String() string {
	var words []string
	for _, w := range privateWords {
		if p.Has(w.bit) {
			words = append(words, w.word)
		}
	}
	if len(words) == 0 {
		return "none"
	}
	return strings.Join(words, ",")
}

// ParsePrivate reads the words of a list; each may hold several, separated by commas. "cloud", which Slurm gave up in
// 23.02, hides nothing.
func ParsePrivate(list []string) (Private, error) {
	var out Private
	none, some := false, false
	for _, text := range list {
	words:
		for w := range strings.SplitSeq(text, ",") {
			w = strings.ToLower(strings.TrimSpace(w))
			switch w {
			case "", "cloud":
				continue
			case "none":
				none = true
				continue
			case "all":
				some = true
				for _, k := range privateWords {
					out |= k.bit
				}
				continue
			}
			for _, k := range privateWords {
				if k.word == w {
					out, some = out|k.bit, true
					continue words
				}
			}
			return 0, fmt.Errorf("%q: expected accounts, events, jobs, nodes, partitions, reservations, usage, "+
				"users, all or none", w)
		}
	}
	if none && some {
		return 0, fmt.Errorf("none cannot be combined with other values")
	}
	return out, nil
}

// Private is what private_data says; Check has read it.
func (c *Config) Private() Private {
	p, _ := ParsePrivate(c.PrivateData)
	return p
}
