package hostlist

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// host is a name cut before its trailing digits. A name without them has width 0.
type host struct {
	prefix string
	num    int64
	width  int
}

func split(name string) host {
	i := len(name)
	for i > 0 && isDigit(name[i-1]) {
		i--
	}
	if width := len(name) - i; width > 0 && width <= maxDigits {
		num, err := strconv.ParseInt(name[i:], 10, 64)
		if err == nil {
			return host{prefix: name[:i], num: num, width: width}
		}
	}
	return host{prefix: name}
}

// Fold writes names as one expression, in their order, duplicates kept. Names next to each other
// with one prefix share a bracket pair; those that also count up by one become a range, as long
// as printing the range at its first number's width gives the very names back.
func Fold(names []string) string {
	var b strings.Builder
	for i := 0; i < len(names); {
		if i > 0 {
			b.WriteByte(',')
		}
		first := split(names[i])
		end := i + 1
		if first.width > 0 {
			for end < len(names) {
				if h := split(names[end]); h.width == 0 || h.prefix != first.prefix {
					break
				}
				end++
			}
		}
		if end == i+1 {
			b.WriteString(names[i])
		} else {
			b.WriteString(first.prefix)
			b.WriteByte('[')
			foldNumbers(&b, names[i:end], len(first.prefix))
			b.WriteByte(']')
		}
		i = end
	}
	return b.String()
}

// foldNumbers writes the inside of one bracket pair; every name starts with the same cut bytes.
func foldNumbers(b *strings.Builder, names []string, cut int) {
	for i := 0; i < len(names); {
		if i > 0 {
			b.WriteByte(',')
		}
		first := split(names[i])
		last := first.num
		end := i + 1
		for end < len(names) {
			h := split(names[end])
			if h.num != last+1 || !samePadding(first, h) {
				break
			}
			last = h.num
			end++
		}
		b.WriteString(names[i][cut:])
		if end > i+1 {
			b.WriteByte('-')
			b.WriteString(names[end-1][cut:])
		}
		i = end
	}
}

// samePadding reports whether h is what a range that starts at first prints for h's number.
func samePadding(first, h host) bool {
	return h.width == max(first.width, digits(h.num))
}

func digits(v int64) int {
	n := 1
	for v >= 10 {
		v /= 10
		n++
	}
	return n
}

// FoldSorted folds a sorted copy of names; it is what node lists of jobs and partitions are
// printed with.
func FoldSorted(names []string) string {
	if slices.IsSortedFunc(names, Compare) {
		return Fold(names)
	}
	sorted := slices.Clone(names)
	slices.SortFunc(sorted, Compare)
	return Fold(sorted)
}

// Compare orders names as Slurm 22.05 lists them: prefixes with the numbers inside them taken as
// numbers (a9b before a10b), then the width of the last number, then its value.
func Compare(a, b string) int {
	ha, hb := split(a), split(b)
	return cmp.Or(
		natural(ha.prefix, hb.prefix),
		cmp.Compare(ha.width, hb.width),
		cmp.Compare(ha.num, hb.num),
		strings.Compare(a, b), // never equal for different names
	)
}

// natural compares text with its runs of digits taken as numbers.
func natural(a, b string) int {
	for a != "" && b != "" {
		if isDigit(a[0]) && isDigit(b[0]) {
			na, nb := digitRun(a), digitRun(b)
			longer := cmp.Compare(na, nb)
			if a[0] == '0' || b[0] == '0' {
				longer = 0 // padded runs compare as text: 01 < 010 < 1
			}
			if c := cmp.Or(longer, strings.Compare(a[:na], b[:nb])); c != 0 {
				return c
			}
			a, b = a[na:], b[nb:]
			continue
		}
		if a[0] != b[0] {
			return cmp.Compare(a[0], b[0])
		}
		a, b = a[1:], b[1:]
	}
	return cmp.Compare(len(a), len(b))
}

func digitRun(s string) int {
	n := 0
	for n < len(s) && isDigit(s[n]) {
		n++
	}
	return n
}
