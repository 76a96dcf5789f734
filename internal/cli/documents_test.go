package cli

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

var (
	mdCode    = regexp.MustCompile("(?ms)^```(?:sh|bash|console)?\n(.*?)^```$|`([^`\n]+)`")
	mdIndent  = regexp.MustCompile(`(?m)^    (\S.*)$`)
	wordOf    = regexp.MustCompile(`"[^"]*"|'[^']*'|\S+`)
	isOption  = regexp.MustCompile(`^--?[a-zA-Z][\w-]*`)
	bracketed = strings.NewReplacer("[", " ", "]", " ", `\|`, " | ", "|", " | ")
)

// TestDocumentedCommands: every bireme command line of the documents names a command that there is, with options that
// it has.
func TestDocumentedCommands(t *testing.T) {
	t.Parallel()
	lines := 0
	err := filepath.WalkDir("../..", func(p string, d fs.DirEntry, err error) error {
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
		for _, line := range commandLines(string(text)) {
			lines++
			checkLine(t, p, line)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if lines < 50 {
		t.Errorf("only %d command lines were found", lines)
	}
}

// commandLines are the parts of code spans and blocks that begin with bireme and end at the shell's next command.
func commandLines(page string) []string {
	var out []string
	add := func(code string) {
		for _, line := range strings.Split(code, "\n") {
			for part := range strings.SplitSeq(strings.NewReplacer("&&", "\n", ";", "\n", " # ", "\n# ").Replace(line), "\n") {
				part = strings.TrimPrefix(strings.TrimSpace(part), "$ ")
				if rest, ok := strings.CutPrefix(part, "bireme "); ok {
					out = append(out, rest)
				}
			}
		}
	}
	for _, m := range mdCode.FindAllStringSubmatch(page, -1) {
		add(m[1] + m[2])
	}
	for _, m := range mdIndent.FindAllStringSubmatch(page, -1) {
		add(m[1])
	}
	return out
}

func checkLine(t *testing.T, page, line string) {
	c := (&App{Version: "1"}).root()
	c.InitDefaultHelpCmd()
	c.InitDefaultCompletionCmd()
	words := wordOf.FindAllString(bracketed.Replace(line), -1)
	for i, w := range words {
		if w == "--" || w == "|" && i > 0 && len(c.Commands()) == 0 && !isOption.MatchString(words[min(i+1, len(words)-1)]) {
			return
		}
		if option := isOption.FindString(w); option != "" {
			checkOption(t, page, line, c, option)
			continue
		}
		if next := below(c, w); next != nil {
			c = next
		} else if i == 0 && strings.ToUpper(w) != w {
			t.Errorf("%s: bireme %s: there is no such command", page, line)
			return
		}
	}
}

func below(c *cobra.Command, name string) *cobra.Command {
	for _, sub := range c.Commands() {
		if sub.Name() == name || sub.HasAlias(name) {
			return sub
		}
	}
	return nil
}

func checkOption(t *testing.T, page, line string, c *cobra.Command, option string) {
	c.InitDefaultHelpFlag()
	c.InitDefaultVersionFlag()
	if c.DisableFlagParsing {
		return
	}
	if name, long := strings.CutPrefix(option, "--"); long {
		if c.Flag(name) == nil {
			t.Errorf("%s: bireme %s: %s has no option %s", page, line, c.CommandPath(), option)
		}
		return
	}
	if c.Flags().ShorthandLookup(option[1:2]) == nil && c.InheritedFlags().ShorthandLookup(option[1:2]) == nil {
		t.Errorf("%s: bireme %s: %s has no option %s", page, line, c.CommandPath(), option)
	}
}
