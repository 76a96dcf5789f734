package schema

import (
	"slices"
	"strconv"
	"strings"
)

// Version is the last number of a version of Slurm's data model: 43 is v0.0.43.
type Version int

// The versions that there are. Recorded is the model of Slurm 22.05's commands; REST clients have those from Oldest on.
const (
	Recorded Version = 38
	Oldest   Version = 40
	Newest   Version = 43
	Default          = Oldest // of --json and --yaml
)

// REST lists the versions that the REST API serves.
func REST() []Version {
	var list []Version
	for v := Oldest; v <= Newest; v++ {
		list = append(list, v)
	}
	return list
}

// String is the version as it is in paths.
func (v Version) String() string { return "v0.0." + strconv.Itoa(int(v)) }

// Parse reads v0.0.NN, and the flags that may follow it: v0.0.40+fast+complex. Unknown versions are not ok.
func Parse(text string) (v Version, flags []string, ok bool) {
	words := strings.Split(text, "+")
	digits, found := strings.CutPrefix(strings.TrimPrefix(words[0], "data_parser/"), "v0.0.")
	n, err := strconv.Atoi(digits)
	if !found || err != nil || strconv.Itoa(n) != digits {
		return 0, nil, false
	}
	v = Version(n)
	return v, words[1:], v == Recorded || slices.Contains(REST(), v)
}
