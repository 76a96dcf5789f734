package ignorefile

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

func TestSkip(t *testing.T) {
	t.Parallel()
	above := t.TempDir()
	tree := txtar.Parse([]byte(`
-- .gitignore --
*.log
-- d/.gitignore --
# a comment
*.tmp
!imp.tmp
/onlytop
doc/**/x
a?c
[bc]at
[!m]oo
\#hash
trailing   
-- d/.dstackignore --
keep/
!wanted.log
-- d/sub/.gitignore --
z.*
-- d/a --
-- d/skip.log --
-- d/wanted.log --
-- d/.git/g --
-- d/sub/.git/g --
-- d/sub/s.log --
-- d/sub/k.txt --
-- d/sub/t.tmp --
-- d/sub/imp.tmp --
-- d/onlytop --
-- d/sub/onlytop --
-- d/keep/q --
-- d/sub/keep --
-- d/sub/z.dat --
-- d/z.dat --
-- d/doc/x --
-- d/doc/1/2/x --
-- d/doc/1/y --
-- d/abc --
-- d/abbc --
-- d/bat --
-- d/dat --
-- d/moo --
-- d/zoo --
-- d/#hash --
-- d/trailing --
`))
	for _, f := range tree.Files {
		at := filepath.Join(above, f.Name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, f.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	top := filepath.Join(above, "d")
	rules, got := New(top), []string{}
	err := filepath.WalkDir(top, func(at string, d fs.DirEntry, err error) error {
		skip, serr := rules.Skip(at, d.IsDir())
		switch {
		case err != nil || serr != nil:
			t.Fatal(err, serr)
		case skip && d.IsDir():
			return fs.SkipDir
		case !skip && !d.IsDir():
			got = append(got, strings.TrimPrefix(at, top+"/"))
		}
		return nil
	})
	want := []string{
		".dstackignore", ".gitignore", "a", "abbc", "dat", "doc/1/y", "moo", "sub/.git/g", "sub/.gitignore", "sub/imp.tmp",
		"sub/k.txt", "sub/keep", "sub/onlytop", "wanted.log", "z.dat",
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got\n%q, want\n%q, %v", got, want, err)
	}
}
