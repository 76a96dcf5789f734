package grammar

import (
	"fmt"
	"math"
	"strings"
)

// GRES is a count of one generic resource, of one type or of any.
type GRES struct {
	Name  string // "gpu"
	Type  string // "a100"; empty for any
	Count int64
}

func (g GRES) String() string {
	if g.Type == "" {
		return fmt.Sprintf("%s:%d", g.Name, g.Count)
	}
	return fmt.Sprintf("%s:%s:%d", g.Name, g.Type, g.Count)
}

// FormatGRES writes a list that ParseGRES reads back.
func FormatGRES(list []GRES) string {
	var words []string
	for _, g := range list {
		words = append(words, g.String())
	}
	return strings.Join(words, ",")
}

const (
	wantGRES = "name[[:type]:count][,...], such as gpu:2 or gpu:a100:1"
	wantGPUs = "[type:]count[,...], such as 2 or a100:1"
)

// ParseGRES reads --gres: a comma list of name, name:count, name:type and name:type:count. A missing
// count is 1; counts may end in K, M, G, T or P (powers of 1024). A leading "gres:" or "gres/", as
// listings print it, is dropped; "none" is the empty list.
func ParseGRES(s string) ([]GRES, error) {
	if strings.EqualFold(s, "none") {
		return nil, nil
	}
	t := &text{what: "generic resource", want: wantGRES, in: s}
	return t.gresList(func(item string, pos int) (GRES, error) {
		if len(item) > 5 && (strings.HasPrefix(item, "gres:") || strings.HasPrefix(item, "gres/")) {
			item, pos = item[5:], pos+5
		}
		name, rest, more := cutAny(item, ":=")
		if !more {
			return GRES{Name: name, Count: 1}, t.word(name, pos)
		}
		g, err := t.typed(rest, pos+len(name)+1)
		g.Name = name
		if err == nil {
			err = t.word(name, pos)
		}
		return g, err
	})
}

// ParseGPUs reads --gpus and its sisters: a comma list of count, type and type:count.
func ParseGPUs(s string) ([]GRES, error) {
	t := &text{what: "GPU count", want: wantGPUs, in: s}
	return t.gresList(func(item string, pos int) (GRES, error) {
		g, err := t.typed(item, pos)
		g.Name = "gpu"
		return g, err
	})
}

func (t *text) gresList(parse func(item string, pos int) (GRES, error)) ([]GRES, error) {
	var list []GRES
	pos := 0
	for _, item := range strings.Split(t.in, ",") {
		g, err := parse(item, pos)
		if err != nil {
			return nil, err
		}
		for _, o := range list {
			if o.Name == g.Name && (o.Type == "") != (g.Type == "") {
				return nil, t.fail(pos, "%s is requested both with and without a type", g.Name)
			}
		}
		list = append(list, g)
		pos += len(item) + 1
	}
	return list, nil
}

// typed reads count, type or type:count; the text starts at pos of the input.
func (t *text) typed(item string, pos int) (GRES, error) {
	typ, count, both := cutAny(item, ":=")
	if both {
		n, err := t.gresCount(count, pos+len(typ)+1)
		if err == nil {
			err = t.typeWord(typ, pos)
		}
		return GRES{Type: typ, Count: n}, err
	}
	if item != "" && isDigit(item[0]) {
		n, err := t.gresCount(item, pos)
		if err != nil && strings.ContainsRune(item, '.') && t.typeWord(item, pos) == nil { // a part of a GPU: 1g.10gb
			return GRES{Type: item, Count: 1}, nil
		}
		return GRES{Count: n}, err
	}
	return GRES{Type: item, Count: 1}, t.word(item, pos)
}

// typeWord checks a type: a word that may also begin with a digit if it has a letter, as parts of GPUs do.
func (t *text) typeWord(w string, pos int) error {
	rest := strings.TrimLeft(w, "0123456789")
	if rest == "" || rest[0] == '-' || rest[0] == '.' {
		return t.word(w, pos)
	}
	return t.word(rest, pos+len(w)-len(rest))
}

// word checks a name or type: letters, digits and - _ . after a letter or underscore.
func (t *text) word(w string, pos int) error {
	if w == "" {
		return t.fail(pos, "a name, type or count is missing")
	}
	for i := range len(w) {
		c := w[i]
		if isLetter(c) || c == '_' || i > 0 && (isDigit(c) || c == '-' || c == '.') {
			continue
		}
		return t.fail(pos+i, "unexpected %q", c)
	}
	return nil
}

func (t *text) gresCount(s string, pos int) (int64, error) {
	n := &text{what: t.what, want: t.want, in: t.in[:pos+len(s)], pos: pos}
	v, err := n.number(math.MaxInt64)
	if err == nil && !n.end() {
		unit := strings.IndexByte("kmgtp", n.peek()|0x20)
		if unit < 0 || n.pos+1 != len(n.in) {
			return 0, t.fail(n.pos, "unexpected %q in a count", n.peek())
		}
		if v > math.MaxInt64>>(10*(unit+1)) {
			return 0, t.fail(pos, "count too large")
		}
		return v << (10 * (unit + 1)), nil
	}
	if err != nil {
		return 0, t.fail(n.pos, "missing or too large count")
	}
	return v, nil
}

func cutAny(s, chars string) (before, after string, found bool) {
	if i := strings.IndexAny(s, chars); i >= 0 {
		return s[:i], s[i+1:], true
	}
	return s, "", false
}
