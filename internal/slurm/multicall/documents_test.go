package multicall

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"bireme.dev/bireme/internal/slurm/getopt"
	"bireme.dev/bireme/internal/slurm/manual"
)

var (
	mdCode  = regexp.MustCompile("(?ms)^```(?:sh|bash|console)?\n(.*?)^```$|`([^`\n]+)`|^    (\\S.*?)$")
	started = regexp.MustCompile(`^(?:\$ )?([a-z]+) (-.*)$`)
)

// TestDocumentedOptions: every command line of the documents that begins with a Slurm command and an option names
// options that the command has.
func TestDocumentedOptions(t *testing.T) {
	t.Parallel()
	pages := map[string]*manual.Page{}
	for _, p := range Manuals() {
		pages[p.Name] = p
	}
	lines := 0
	err := filepath.WalkDir("../../..", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && len(d.Name()) > 2 || d.Name() == "testdata") {
			return fs.SkipDir
		}
		if !strings.HasSuffix(p, ".md") || d.Name() == "CHANGELOG.md" {
			return nil
		}
		text, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		for _, m := range mdCode.FindAllStringSubmatch(string(text), -1) {
			for line := range strings.SplitSeq(strings.ReplaceAll(m[1]+m[2]+m[3], ";", "\n"), "\n") {
				if w := started.FindStringSubmatch(strings.TrimSpace(line)); w != nil && pages[w[1]] != nil {
					lines++
					checkOptions(t, p, pages[w[1]], strings.Fields(w[2]))
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if lines < 10 {
		t.Errorf("only %d command lines were found", lines)
	}
}

// checkOptions looks at the options before the first operand.
func checkOptions(t *testing.T, page string, p *manual.Page, words []string) {
	for i := 0; i < len(words) && strings.HasPrefix(words[i], "-") && len(words[i]) > 1; i++ {
		name, _, valued := strings.Cut(strings.TrimPrefix(words[i], "--"), "=")
		name, _, _ = strings.Cut(name, "[")
		at := slices.IndexFunc(p.Rows, func(r manual.Row) bool {
			if strings.HasPrefix(words[i], "--") {
				return strings.HasPrefix(r.Long, name)
			}
			return r.Short == words[i][1]
		})
		if name != "help" && name != "usage" && name != "version" && at < 0 {
			t.Errorf("%s: %s %s: %s has no option %s", page, p.Name, strings.Join(words, " "), p.Name, words[i])
			return
		}
		if at >= 0 && p.Rows[at].Arg == getopt.RequiredArg && !valued &&
			(strings.HasPrefix(words[i], "--") || len(words[i]) == 2) {
			i++
		}
	}
}
