package manpage

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestPage: every command and option that is not hidden is on the page, and nothing in a text is taken for a request.
func TestPage(t *testing.T) {
	t.Parallel()
	root := &cobra.Command{Use: "tool", Short: "do things", Version: "1-2"}
	run := func(*cobra.Command, []string) {}
	leaf := &cobra.Command{Use: "leaf NAME...", Short: "act on names", Run: run, Aliases: []string{"l"}}
	leaf.Flags().StringP("dry-run", "n", "", "only `MODE` \\ no more")
	leaf.Flags().Int("depth", 3, "levels")
	leaf.Flags().String("secret", "", "not for people")
	if err := leaf.Flags().MarkHidden("secret"); err != nil {
		t.Fatal(err)
	}
	group := &cobra.Command{Use: "group", Short: "holds others"}
	group.AddCommand(leaf)
	root.AddCommand(group, &cobra.Command{Use: "gone", Hidden: true, Run: run},
		&cobra.Command{Use: "dots", Short: "x", Long: "One.\n\n.dotted\n\n  tool a\n  tool b", Run: run})
	page := Page(root, 8, "The end.")
	for _, want := range []string{
		".TH TOOL 8 \"\" \"Bireme 1\\-2\"\n", "tool \\- do things\n", ".SS \"tool group leaf NAME...\"\n.PP\nAct on names",
		"Also: l.\n", ".TP\n\\fB\\-n\\fR, \\fB\\-\\-dry\\-run\\fR \\fIMODE\\fR\nonly MODE \\e no more\n",
		"\\-\\-depth\\fR \\fIint\\fR\nlevels (default 3)\n", ".PP\n\\&.dotted\n", ".nf\n  tool a\n  tool b\n.fi\n",
		".SH NOTES\n.PP\nThe end.\n",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("%q is missing in\n%s", want, page)
		}
	}
	for _, hidden := range []string{"secret", "gone", "holds others"} {
		if strings.Contains(page, hidden) {
			t.Errorf("%s is on the page", hidden)
		}
	}
}
