package cmd

import (
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Dashes stand before and after the block that -v of the listing commands prints.
const Dashes = "-----------------------------"

// Pair is a line of that block.
type Pair struct{ Name, Value string }

// WriteBlock prints what was asked for, as -v does.
func WriteBlock(out io.Writer, pad int, pairs []Pair) {
	fmt.Fprintln(out, Dashes)
	for _, p := range pairs {
		fmt.Fprintf(out, "%-*s = %s\n", pad, p.Name, p.Value)
	}
	fmt.Fprintln(out, Dashes)
}

// OrNull is the value of an option, or Slurm's word for none.
func (f Flags) OrNull(key string) string {
	if v := f.Get(key); v != "" {
		return v
	}
	return "(null)"
}

// Count is how often an option was given, as a number.
func (f Flags) Count(key string) string {
	n := 0
	for _, v := range f.Values {
		if v.Key == key {
			n++
		}
	}
	return strconv.Itoa(n)
}

// Bool is Slurm's word for whether an option was given.
func (f Flags) Bool(key string) string { return strconv.FormatBool(f.Has(key)) }

// Number is an option's number; 0 if it was not given.
func (f Flags) Number(key string) string {
	if v := strings.TrimSpace(f.Get(key)); v != "" {
		return v
	}
	return "0"
}
