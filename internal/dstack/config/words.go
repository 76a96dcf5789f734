package config

import (
	"errors"
	"slices"
	"strings"
)

// SplitWords cuts a line into words as a shell would, without expanding anything.
func SplitWords(s string) ([]string, error) {
	var words []string
	var word []byte
	in := false // a word has begun
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case ' ', '\t', '\n', '\r':
			if in {
				words = append(words, string(word))
				word, in = word[:0], false
			}
		case '\'', '"':
			end := i + 1
			for end < len(s) && s[end] != c {
				if s[end] == '\\' && c == '"' && end+1 < len(s) && slices.Contains([]byte(`"\$`), s[end+1]) {
					end++
				}
				word = append(word, s[end])
				end++
			}
			if end >= len(s) {
				return nil, errors.New("a quote is missing its end")
			}
			i, in = end, true
		case '\\':
			if i++; i < len(s) {
				word = append(word, s[i])
			}
			in = true
		default:
			word, in = append(word, c), true
		}
	}
	if in {
		words = append(words, string(word))
	}
	return words, nil
}

// JoinWords quotes words so that a shell reads them back as they were.
func JoinWords(words []string) string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = QuoteWord(w)
	}
	return strings.Join(out, " ")
}

// QuoteWord quotes a word for a shell where it needs it.
func QuoteWord(w string) string {
	plain := w != "" && strings.IndexFunc(w, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' ||
			strings.ContainsRune("@%+=:,./-_", r))
	}) < 0
	if plain {
		return w
	}
	return "'" + strings.ReplaceAll(w, "'", `'"'"'`) + "'"
}
