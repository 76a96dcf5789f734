// Package nearest finds the word that somebody who mistyped probably meant.
package nearest

import "strings"

// Word gives the word of known that a typing mistake may have turned into got, in any case, else the only one that
// begins with it, or "". The first of several that are equally near is taken.
func Word(got string, known []string) string {
	best, bestAt := "", 3 // more than two edits is another word, and so is one of which not half is left
	for _, k := range known {
		if d := distance(strings.ToLower(got), strings.ToLower(k)); d < bestAt && 2*d <= min(len(got), len(k)) {
			best, bestAt = k, d
		}
	}
	if best != "" || len(got) < 3 {
		return best
	}
	for _, k := range known {
		if !strings.HasPrefix(strings.ToLower(k), strings.ToLower(got)) {
			continue
		}
		if best != "" {
			return ""
		}
		best = k
	}
	return best
}

// Hint is "; did you mean WORD?", or nothing.
func Hint(got string, known []string) string {
	if w := Word(got, known); w != "" {
		return "; did you mean " + w + "?"
	}
	return ""
}

// distance counts the edits (insert, delete, replace, swap of neighbors) between two short words.
func distance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return 64
	}
	d := make([][]int, len(a)+1)
	for i := range d {
		d[i] = make([]int, len(b)+1)
		d[i][0] = i
	}
	for j := range d[0] {
		d[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			d[i][j] = min(d[i-1][j]+1, d[i][j-1]+1, d[i-1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d[i][j] = min(d[i][j], d[i-2][j-2]+1)
			}
		}
	}
	return d[len(a)][len(b)]
}
