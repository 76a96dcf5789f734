// Package ignorefile leaves out files by .gitignore and .dstackignore, as git reads the former: those of a folder, of
// what is below it and of all folders above it.
package ignorefile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// names are the files with patterns; what a later one says counts for more.
var names = []string{".gitignore", ".dstackignore"}

// Rules are those of a folder and of what is around it. They belong to one goroutine.
type Rules struct {
	top  string
	read map[string][]pattern // by folder
}

// New gives the rules of a folder, an absolute path.
func New(top string) *Rules { return &Rules{top: top, read: map[string][]pattern{}} }

// Skip reports whether a file or folder below the top is left out. What is in a folder that is left out is not asked
// for.
func (r *Rules) Skip(at string, dir bool) (bool, error) {
	if at == r.top {
		return false, nil
	}
	if at == filepath.Join(r.top, ".git") {
		return true, nil
	}
	for in := filepath.Dir(at); ; in = filepath.Dir(in) {
		list, err := r.in(in)
		if err != nil {
			return false, err
		}
		below, err := filepath.Rel(in, at)
		if err != nil {
			return false, err
		}
		for i := len(list) - 1; i >= 0; i-- {
			if p := &list[i]; (dir || !p.folders) && p.match.MatchString(below) {
				return !p.keep, nil
			}
		}
		if in == filepath.Dir(in) {
			return false, nil
		}
	}
}

// in reads the patterns of a folder.
func (r *Rules) in(dir string) ([]pattern, error) {
	list, ok := r.read[dir]
	if ok {
		return list, nil
	}
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) {
			return nil, err
		}
		for line := range strings.Lines(string(text)) {
			if p, ok := parse(strings.TrimRight(line, "\r\n")); ok {
				list = append(list, p)
			}
		}
	}
	r.read[dir] = list
	return list, nil
}

// pattern is a line of a file.
type pattern struct {
	keep    bool // "!": what matches is not left out
	folders bool // "/" at its end: only folders
	match   *regexp.Regexp
}

// parse reads a line; false: it is empty, a comment, or no pattern.
func parse(line string) (p pattern, ok bool) {
	if !strings.HasSuffix(line, `\ `) {
		line = strings.TrimRight(line, " \t")
	}
	if line == "" || line[0] == '#' {
		return p, false
	}
	line, p.keep = strings.CutPrefix(line, "!")
	line, p.folders = strings.CutSuffix(line, "/")
	anchored := strings.Contains(line, "/")
	line = strings.TrimPrefix(line, "/")
	if line == "" {
		return p, false
	}
	var b strings.Builder
	b.WriteString("^")
	if !anchored {
		b.WriteString("(?:.*/)?")
	}
	translate(&b, line)
	b.WriteString("$")
	re, err := regexp.Compile(b.String())
	p.match = re
	return p, err == nil
}

// translate writes a pattern as a regular expression.
func translate(b *strings.Builder, text string) {
	for i := 0; i < len(text); i++ {
		rest := text[i:]
		switch {
		case strings.HasPrefix(rest, "**/") && (i == 0 || text[i-1] == '/'):
			b.WriteString("(?:.*/)?")
			i += 2
		case rest == "**" && i > 0 && text[i-1] == '/':
			b.WriteString(".+")
			i++
		case rest[0] == '*':
			b.WriteString("[^/]*")
		case rest[0] == '?':
			b.WriteString("[^/]")
		case rest[0] == '[' && strings.IndexByte(rest[1:], ']') > 0:
			end := 1 + strings.IndexByte(rest[1:], ']')
			if end == 2 && rest[1] == '!' && strings.IndexByte(rest[3:], ']') >= 0 { // "[!]a]"
				end = 3 + strings.IndexByte(rest[3:], ']')
			}
			class := strings.ReplaceAll(rest[1:end], `\`, `\\`)
			if not, ok := strings.CutPrefix(class, "!"); ok {
				class = "^/" + not
			}
			b.WriteString("[" + strings.ReplaceAll(class, "[", `\[`) + "]")
			i += end
		case rest[0] == '\\' && len(rest) > 1:
			b.WriteString(regexp.QuoteMeta(rest[1:2]))
			i++
		default:
			b.WriteString(regexp.QuoteMeta(rest[:1]))
		}
	}
}
