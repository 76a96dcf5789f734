package grammar

import (
	"errors"
	"strings"
)

// GPU is a dstack GPU spec.
type GPU struct {
	Vendor string // nvidia, amd, google, intel, tenstorrent; empty for any
	Names  []string
	Count  Range[int]      // 1.. when none is given
	Memory *Range[float64] // GB of each GPU; nil for any
	Legacy bool            // a name had the old prefix tpu-, which was dropped: worth a warning
}

const wantGPU = "tokens of vendor, names, memory and count joined by ':', such as A100:80GB:4 or 40GB..80GB:1..8"

var vendors = map[string]string{
	"nvidia": "nvidia", "amd": "amd", "google": "google", "tpu": "google", "intel": "intel",
	"tenstorrent": "tenstorrent", "tt": "tenstorrent",
}

// ParseGPU reads tokens joined by ':' in any order, each kind at most once: a vendor, a comma list of names
// (they start with a letter), a memory size or range (it has a letter) and a count or range of counts.
func ParseGPU(s string) (GPU, error) {
	t := &text{what: "GPU spec", want: wantGPU, in: s}
	var g GPU
	counted := false
	err := t.tokens(func(token string, pos int) error {
		vendor, isVendor := vendors[strings.ToLower(token)]
		conflict := func(kind string) error { return t.fail(pos, "a second %s, %q", kind, token) }
		var err error
		switch {
		case isVendor && g.Vendor != "":
			return conflict("vendor")
		case isVendor:
			g.Vendor = vendor
		case isLetter(token[0]) && g.Names != nil:
			return conflict("name")
		case isLetter(token[0]):
			return g.names(t, token, pos)
		case strings.ContainsFunc(token, func(r rune) bool { return r < 0x80 && isLetter(byte(r)) }):
			if g.Memory != nil {
				return conflict("memory size")
			}
			var r Range[float64]
			sub := t.token(token)
			r, err = parseRange(sub, sub.size)
			g.Memory = &r
		case counted:
			return conflict("count")
		default:
			counted = true
			sub := t.token(token)
			g.Count, err = parseRange(sub, sub.integer)
		}
		return t.whole(err, pos)
	})
	if err != nil {
		return GPU{}, err
	}
	if !counted {
		g.Count = AtLeast(1)
	}
	return g, nil
}

func (g *GPU) names(t *text, token string, pos int) error {
	for _, name := range strings.Split(token, ",") {
		name = strings.TrimSpace(name)
		if len(name) > 4 && strings.EqualFold(name[:4], "tpu-") {
			name, g.Legacy = name[4:], true
		}
		if name == "" {
			return t.fail(pos, "an empty name in %q", token)
		}
		g.Names = append(g.Names, name)
	}
	return nil
}

// String writes the spec so that ParseGPU reads it back.
func (g GPU) String() string {
	var w []string
	if g.Vendor != "" {
		w = append(w, g.Vendor)
	}
	if len(g.Names) > 0 {
		w = append(w, strings.Join(g.Names, ","))
	}
	if g.Memory != nil {
		w = append(w, FormatSizes(*g.Memory))
	}
	return strings.Join(append(w, g.Count.String()), ":")
}

// tokens calls each for the trimmed parts between colons.
func (t *text) tokens(each func(token string, pos int) error) error {
	pos := 0
	for _, part := range strings.Split(t.in, ":") {
		token := strings.TrimSpace(part)
		if token == "" {
			return t.fail(pos, "an empty token")
		}
		if err := each(token, pos+strings.Index(part, token)); err != nil {
			return err
		}
		pos += len(part) + 1
	}
	return nil
}

// token is a part of the input on its own; whole names its faults by their place in the whole.
func (t *text) token(token string) *text { return &text{what: t.what, want: t.want, in: token} }

func (t *text) whole(err error, pos int) error {
	var e *Error
	if errors.As(err, &e) {
		return t.fail(min(pos+e.Pos, len(t.in)), "%s", e.Msg)
	}
	return err
}
