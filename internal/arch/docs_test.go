package arch

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	mdLink    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	mdHeading = regexp.MustCompile("(?m)^#+ (.*)$")
	mdFence   = regexp.MustCompile("(?ms)^```.*?^```$")
	notInSlug = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// TestDocumentLinks: what a page links to is there, file and heading.
func TestDocumentLinks(t *testing.T) {
	t.Parallel()
	pages := documents(t)
	for name, text := range pages {
		for _, m := range mdLink.FindAllStringSubmatch(mdFence.ReplaceAllString(text, ""), -1) {
			if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
				continue
			}
			file, heading, _ := strings.Cut(m[1], "#")
			to := name
			if file != "" {
				to = path.Join(path.Dir(name), file)
			}
			if _, err := os.Stat(filepath.Join(root, to)); errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s links to %s, which is not there", name, m[1])
			} else if page, ok := pages[to]; ok && heading != "" && !headings(page)[heading] {
				t.Errorf("%s links to %s: %s has no such heading", name, m[1], to)
			}
		}
	}
}

// documents are all pages of the project, by their names relative to the module.
func documents(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := fs.WalkDir(os.DirFS(root), ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := path.Base(p)
		if d.IsDir() && (p != "." && base[0] == '.' || base == "testdata" || base == "bin") {
			return fs.SkipDir
		}
		if strings.HasSuffix(base, ".md") {
			text, err := os.ReadFile(filepath.Join(root, p))
			if err != nil {
				return err
			}
			out[p] = string(text)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// headings are the anchors that GitHub makes of a page's headings.
func headings(page string) map[string]bool {
	out := map[string]bool{}
	for _, m := range mdHeading.FindAllStringSubmatch(mdFence.ReplaceAllString(page, ""), -1) {
		slug := notInSlug.ReplaceAllString(strings.ToLower(m[1]), "")
		out[strings.ReplaceAll(slug, " ", "-")] = true
	}
	return out
}

var (
	goModRequire = regexp.MustCompile(`(?m)^\t(\S+) v\S+$`)
	styleModule  = regexp.MustCompile("`([a-z0-9.]+\\.[a-z]+/[^`]+)` \\(")
)

// TestDependenciesAreListed: docs/style.md §12 lists what go.mod requires itself, and nothing else.
func TestDependenciesAreListed(t *testing.T) {
	t.Parallel()
	gomod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(documents(t)["docs/style.md"], "\n## 12. Dependencies\n")
	section, _, _ = strings.Cut(section, "\n## ")
	required, listed := map[string]bool{}, map[string]bool{}
	for _, m := range goModRequire.FindAllStringSubmatch(string(gomod), -1) {
		required[m[1]] = true
	}
	for _, m := range styleModule.FindAllStringSubmatch(section, -1) {
		listed[m[1]] = true
	}
	for m := range required {
		if !listed[m] {
			t.Errorf("go.mod requires %s: docs/style.md §12 does not say why", m)
		}
	}
	for m := range listed {
		if !required[m] {
			t.Errorf("docs/style.md §12 lists %s, which go.mod does not require", m)
		}
	}
}
