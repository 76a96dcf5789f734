package dstack

import (
	"regexp"
	"strconv"
	"sync"

	"bireme.dev/bireme/internal/core"
)

// Words of generated run names: adjective-noun-number. A galley's, so that they are told from dstack's animals.
var (
	adjectives = [...]string{
		"able", "bold", "brave", "bright", "brisk", "calm", "clear", "eager", "fair", "fast", "firm", "fleet", "fresh",
		"glad", "grand", "keen",
		"kind", "light", "lively", "loyal", "merry", "neat", "noble", "proud", "quick", "quiet", "rapid", "ready",
		"sharp", "steady", "swift", "wise",
	}
	nouns = [...]string{
		"anchor", "beacon", "breeze", "buoy", "cape", "coast", "coral", "crest", "current", "delta", "drum", "foam",
		"galley", "gull", "harbor", "hull",
		"island", "keel", "lagoon", "lantern", "mast", "oar", "osprey", "pearl", "pilot", "reef", "rudder", "sail",
		"shore", "tide", "voyage", "wave",
	}
)

// RunName makes the name of a run that was given none: seed chooses the words (the caller draws it), and the number is
// the first for which taken says no.
func RunName(seed uint64, taken func(name string) bool) string {
	base := adjectives[seed%uint64(len(adjectives))] + "-" + nouns[seed/uint64(len(adjectives))%uint64(len(nouns))] + "-"
	for n := 1; ; n++ {
		if name := base + strconv.Itoa(n); !taken(name) {
			return name
		}
	}
}

var nameForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z][a-z0-9-]{1,40}$`) })

// CheckName tells what is wrong with a run's name, or nil.
func CheckName(name string) error { return checkName("run", name) }

// CheckFleetName tells what is wrong with a fleet's name, or nil.
func CheckFleetName(name string) error { return checkName("fleet", name) }

// CheckOtherName tells what is wrong with the name of another thing of a configuration, or nil.
func CheckOtherName(of, name string) error { return checkName(of, name) }

func checkName(of, name string) error {
	if !nameForm().MatchString(name) {
		return core.Errorf(core.Invalid, "%q is not a %s name: 2 to 41 lower-case letters, digits and dashes, a "+
			"letter first", name[:min(len(name), 100)], of)
	}
	return nil
}
