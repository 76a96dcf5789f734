package secretarg

import "strings"

// IsName reports whether a variable's name says that its value is a secret: HF_TOKEN, DB_PASSWORD,
// AWS_SECRET_ACCESS_KEY.
func IsName(name string) bool {
	words := strings.Split(strings.ToUpper(name), "_")
	for i, w := range words {
		last := i == len(words)-1
		switch w {
		case "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "CREDENTIALS", "APIKEY":
			return true
		case "KEY", "PASS", "PWD", "AUTH":
			if last && i > 0 {
				return true
			}
		}
		if last && (strings.HasSuffix(w, "PASSWORD") || strings.HasSuffix(w, "TOKEN") || strings.HasSuffix(w, "SECRET")) {
			return true
		}
	}
	return false
}

// Span is a part of a text, [From, To).
type Span struct{ From, To int }

// Find finds the secrets in argument i of a command line: values of variables with a name that says so, all
// values in a list of --export, the password of a URL, and what follows --token.
func Find(argv []string, i int) []Span {
	arg := argv[i]
	if rest, ok := strings.CutPrefix(arg, "--token="); ok {
		return span(arg, len(arg)-len(rest), len(arg))
	}
	if i > 0 && argv[i-1] == "--token" && arg != "-" {
		return span(arg, 0, len(arg))
	}
	if !strings.Contains(arg, "=") && !strings.Contains(arg, "://") {
		return nil
	}
	option, _, inside := strings.Cut(arg, "=")
	if inside && isExport(option) {
		return append(urlSpans(arg), valueSpans(arg, len(option)+1, true)...)
	}
	return append(urlSpans(arg), valueSpans(arg, 0, i > 0 && isExport(argv[i-1]))...)
}

// isExport reports whether an option is --export, which may be abbreviated.
func isExport(option string) bool {
	return len(option) >= len("--exp") && strings.HasPrefix("--export", option)
}

func span(arg string, from, to int) []Span {
	if from >= to || arg[from:to] == "-" {
		return nil
	}
	return []Span{{from, to}}
}

// urlSpans finds the passwords of URLs: SCHEME://USER:PASSWORD@HOST.
func urlSpans(arg string) (out []Span) {
	for at := 0; ; {
		n := strings.Index(arg[at:], "://")
		if n < 0 {
			return out
		}
		at += n + len("://")
		end := len(arg)
		if n := strings.IndexAny(arg[at:], "/?# \t\n,"); n >= 0 {
			end = at + n
		}
		host := strings.LastIndexByte(arg[at:end], '@')
		if colon := strings.IndexByte(arg[at:end], ':'); colon >= 0 && colon < host {
			out = append(out, span(arg, at+colon+1, at+host)...)
		}
	}
}

// valueSpans finds the values of NAME=VALUE from an offset on, where NAME says that it is a secret. In a list, which is
// that of --export, every value is taken for one: what is passed on by hand has its reason. A value ends there where
// the next variable begins.
func valueSpans(arg string, at int, list bool) (out []Span) {
	for at < len(arg) {
		eq := strings.IndexByte(arg[at:], '=')
		if eq < 0 {
			return out
		}
		eq += at
		from := eq
		for from > at && isNameByte(arg[from-1]) {
			from--
		}
		if !list && !IsName(arg[from:eq]) {
			at = eq + 1
			continue
		}
		end := len(arg)
		for i := eq + 1; list && i < len(arg); i++ {
			if arg[i] == ',' && startsVariable(arg[i+1:]) {
				end = i
				break
			}
		}
		out = append(out, span(arg, eq+1, end)...)
		at = end
	}
	return out
}

func isNameByte(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// startsVariable reports whether a list goes on with NAME, or NAME=VALUE.
func startsVariable(rest string) bool {
	n := 0
	for n < len(rest) && isNameByte(rest[n]) {
		n++
	}
	return n > 0 && (n == len(rest) || rest[n] == '=' || rest[n] == ',')
}

// Mask gives a command line with *** in place of its secrets.
func Mask(argv []string) []string {
	out := argv
	for i := range argv {
		spans := Find(argv, i)
		if len(spans) == 0 {
			continue
		}
		if &out[0] == &argv[0] {
			out = append([]string(nil), argv...)
		}
		var b strings.Builder
		at := 0
		for _, s := range spans {
			if s.From < at {
				continue
			}
			b.WriteString(argv[i][at:s.From] + "***")
			at = s.To
		}
		out[i] = b.String() + argv[i][at:]
	}
	return out
}
