package cmd

import (
	"bytes"
	"fmt"
	"strconv"
)

// Lane is one stream of one task.
type Lane struct {
	Rank int32
	FD   int8
}

// Labels puts the rank of its task before each line of output.
type Labels struct {
	width int
	rest  map[Lane][]byte // what follows the end of the last line
	lines []byte          // what was given last, kept for its room
}

// NewLabels makes labels wide enough for the highest rank.
func NewLabels(highest int32) *Labels {
	return &Labels{width: len(strconv.Itoa(int(highest))), rest: map[Lane][]byte{}}
}

// Add takes a piece of output, an empty one being its end, and gives the whole lines there are with their labels:
// they are good until the next call.
func (b *Labels) Add(l Lane, data []byte) []byte {
	prefix := fmt.Sprintf("%*d: ", b.width, l.Rank)
	ended := len(data) == 0
	rest := b.rest[l]
	out := b.lines[:0]
	for {
		i := bytes.IndexByte(data, '\n')
		if i < 0 {
			break
		}
		out = append(append(append(out, prefix...), rest...), data[:i+1]...)
		data, rest = data[i+1:], rest[:0]
	}
	if len(data) > 0 {
		rest = append(rest, data...)
	} else if ended && len(rest) > 0 { // a last line without its newline
		out = append(append(append(out, prefix...), rest...), '\n')
		rest = rest[:0]
	}
	b.rest[l], b.lines = rest, out
	return out
}

// Open are the streams whose last line has not ended.
func (b *Labels) Open() []Lane {
	var list []Lane
	for l, rest := range b.rest {
		if len(rest) > 0 {
			list = append(list, l)
		}
	}
	return list
}
