package main

import (
	"go/ast"
	"go/token"
	"regexp"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// avoidedPhrases are words that comments do without, each with what to write in its place. docs/style.md has the rule:
// plain present-day technical English, American spelling. A phrase is listed once no comment has it.
var avoidedPhrases = []struct {
	find *regexp.Regexp
	use  string
}{
	{phrase(`tells? whether`), "reports whether, or isX: …"},
	{phrase(`he|his|him|himself|she|herself`), "they, the user, it"},
	{phrase(`anew`), "again"},
	{phrase(`for ever`), "forever"},
	{phrase(`in vain`), "without effect"},
	{phrase(`whence|whither|thither|thereof|hitherto|ere|betimes`), "from where, to where, of it, until now, before"},
	{phrase(`behaviour\w*`), "behavior"},
	{phrase(`neighbour\w*`), "neighbor"},
	{phrase(`colour\w*`), "color"},
	{phrase(`licences?`), "license"},
	{regexp.MustCompile(`\b(cancelled|cancelling)\b`), "canceled, canceling"}, // CANCELLED is a state of Slurm's
	{phrase(`marshalled|labelled`), "marshaled, labeled"},
	{phrase(`honour\w*|favour\w*`), "honor, favor"},
}

// avoidedNames are identifiers that say nothing to a reader who knows the field, each with the word to use.
var avoidedNames = map[string]string{
	"stirred": "invalidated", "stir": "invalidate", "forlorn": "unsatisfiable", "dive": "backfill", "hunt": "findVictims",
	"ripen": "enqueueEligible", "redeemed": "reservationDropped", "rouse": "wake", "unpush": "rollback",
	"foothold": "placement", "tenant": "job", "longing": "request",
}

func phrase(text string) *regexp.Regexp { return regexp.MustCompile(`(?i)\b(` + text + `)\b`) }

// words refuses phrases in comments and names of identifiers that the project has given up.
var words = &analysis.Analyzer{
	Name: "words",
	Doc:  "check that comments and names use the words of the field",
	Run: func(pass *analysis.Pass) (any, error) {
		for _, f := range pass.Files {
			for _, g := range f.Comments {
				for _, c := range g.List {
					checkComment(pass, c)
				}
			}
			ast.Inspect(f, func(n ast.Node) bool {
				id, ok := n.(*ast.Ident)
				if use := avoidedNames[identName(id)]; ok && use != "" && pass.TypesInfo.Defs[id] != nil {
					pass.Reportf(id.Pos(), "words: the name %s: use %s", id.Name, use)
				}
				return true
			})
		}
		return nil, nil
	},
}

func identName(id *ast.Ident) string {
	if id == nil {
		return ""
	}
	return strings.ToLower(id.Name)
}

// checkComment reports what is avoided outside quotation marks: a text of Slurm's or of a user's may be quoted.
func checkComment(pass *analysis.Pass, c *ast.Comment) {
	text := blankQuotes(c.Text)
	for _, p := range avoidedPhrases {
		if at := p.find.FindStringIndex(text); at != nil {
			pass.Reportf(c.Pos()+token.Pos(at[0]), "words: %q in a comment: use %s", text[at[0]:at[1]], p.use)
		}
	}
}

var quoted = regexp.MustCompile("\"[^\"\n]*\"|`[^`\n]*`")

func blankQuotes(text string) string {
	return quoted.ReplaceAllStringFunc(text, func(q string) string { return strings.Repeat(" ", len(q)) })
}
