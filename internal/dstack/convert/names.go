package convert

import "strconv"

// Words of generated run names: adjective-animal-number, as dstack's are.
var (
	adjectives = [...]string{
		"able", "bold", "brave", "bright", "brisk", "calm", "clear", "eager", "fair", "fast", "firm", "fresh", "glad",
		"grand", "keen", "kind", "light", "lively", "loyal", "merry", "neat", "noble", "proud", "quick", "quiet", "rapid",
		"ready", "sharp", "steady", "swift", "warm", "wise",
	}
	animals = [...]string{
		"badger", "bear", "beaver", "bison", "crane", "deer", "dolphin", "eagle", "falcon", "ferret", "finch", "fox",
		"gull", "hare", "heron", "horse", "ibex", "jay", "koala", "lark", "lynx", "mole", "moose", "newt", "otter", "owl",
		"panda", "raven", "robin", "seal", "swan", "wolf",
	}
)

// Name makes the name of a run that was given none: seed chooses the words (the caller draws it), and the number is the
// first for which taken says no.
func Name(seed uint64, taken func(name string) bool) string {
	first, second := seed%uint64(len(adjectives)), seed/uint64(len(adjectives))%uint64(len(animals))
	base := adjectives[first] + "-" + animals[second] + "-"
	for n := 1; ; n++ {
		if name := base + strconv.Itoa(n); !taken(name) {
			return name
		}
	}
}
