// Package named has what the records that people name have in common: lists in the order of names, what a name may look
// like, and a hint at the name that was probably meant.
package named

import (
	"maps"
	"slices"
	"strings"
	"unicode"

	"bireme.dev/bireme/internal/core/nearest"
)

// Sorted lists the values of a map in the order of its keys.
func Sorted[K ~string, V any](m map[K]V) []V {
	out := make([]V, 0, len(m))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, m[k])
	}
	return out
}

// Hint names the known name nearest to one that is not known, as the end of an error message; empty if none is near.
func Hint[K ~string, V any](got K, known map[K]V) string {
	names := make([]string, 0, len(known))
	for _, k := range slices.Sorted(maps.Keys(known)) {
		names = append(names, string(k))
	}
	return nearest.Hint(string(got), names)
}

// Join joins names with commas.
func Join[T ~string](list []T) string {
	var b strings.Builder
	for i, v := range list {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(string(v))
	}
	return b.String()
}

// IsValid reports whether people can be asked to type a name. Lists of names are separated by commas and blanks, paths
// by slashes, and what does not print cannot be told apart.
func IsValid(n string) bool {
	odd := func(r rune) bool {
		return r == unicode.ReplacementChar || !unicode.IsPrint(r) || strings.ContainsRune(" ,/:", r)
	}
	return n != "" && len(n) <= 128 && strings.IndexFunc(n, odd) < 0
}
