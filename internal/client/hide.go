package client

import (
	"os"
	"strings"
	"unsafe"

	"bireme.dev/bireme/internal/core/secretarg"
)

// HideArguments overwrites the secrets among this process's arguments where ps and /proc show them to everybody, and
// gives the arguments as they were. It must be the first thing a program does: strings that were cut out of os.Args
// before share its bytes.
func HideArguments() []string {
	shown := os.Args // their bytes are those that the kernel shows
	for i := range shown {
		if len(secretarg.Find(shown, i)) > 0 {
			return hideArguments(shown)
		}
	}
	return shown
}

func hideArguments(shown []string) []string {
	kept := make([]string, len(shown))
	for i := range shown {
		kept[i] = strings.Clone(shown[i])
	}
	for i := range kept {
		for _, s := range secretarg.Find(kept, i) {
			b := unsafe.Slice(unsafe.StringData(shown[i]), len(shown[i]))
			for j := s.From; j < s.To; j++ {
				b[j] = '*'
			}
		}
	}
	os.Args = kept
	return kept
}
