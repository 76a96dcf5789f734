package sacctmgr

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"bireme.dev/bireme/internal/slurm/cmd"
)

// TestHelpNamesWhatIsTaken: conditions that the help names for list and delete are understood.
func TestHelpNamesWhatIsTaken(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if code := Run(t.Context(), &cmd.World{Name: "sacctmgr", Out: &out}, []string{"--help"}); code != 0 {
		t.Fatal("exit code ", code)
	}
	lines := regexp.MustCompile(`(?m)^       (list|delete) (\w+) +- (.*\n(?: {29}.*\n)*)`)
	count := 0
	for _, line := range lines.FindAllStringSubmatch(out.String(), -1) {
		what, _ := entity([]string{line[2]})
		words := listing[what].words
		if what == "coordinators" {
			words = coordinatorWords
		}
		if words == nil {
			t.Errorf("%s %s is not known", line[1], line[2])
		}
		for _, key := range regexp.MustCompile(`\w+=`).FindAllString(line[3], -1) {
			if strings.Contains(line[3], "refused") {
				continue
			}
			count++
			where, _ := items([]string{key + "1"})
			if _, bad := parseCondition(words, where); bad != nil {
				t.Errorf("%s %s: %s is not known", line[1], line[2], key)
			}
		}
	}
	if count < 40 {
		t.Errorf("only %d conditions were found in\n%s", count, out.String())
	}
}
