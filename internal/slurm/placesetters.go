package slurm

import (
	"strconv"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/grammar"
)

// The options that say which nodes a job gets.

func constraint(r *Request, v string) error { r.extra.Constraint = v; return nil }
func prefer(r *Request, v string) error     { r.extra.Prefer = v; return nil }
func contiguous(r *Request, _ string) error { r.extra.Contiguous = true; return nil }

func switches(r *Request, v string) error {
	if _, _, err := grammar.ParseSwitches(v); err != nil {
		return r.Fail(ExitError, "Invalid numeric value %q for --switches.", v)
	}
	r.extra.Switches = v
	return nil
}

func segment(r *Request, v string) (err error) {
	r.extra.Segment, err = r.number("segment", v, 1)
	return err
}

func spreadJob(r *Request, _ string) error   { r.wide().SpreadJob = true; return nil }
func useMinNodes(r *Request, _ string) error { r.wide().UseMinNodes = true; return nil }

// wide gives the part of the shape that few jobs have, to be written to.
func (r *Request) wide() *core.ShapeMore {
	if r.Spec.Shape.More == nil {
		r.Spec.Shape.More = &core.ShapeMore{}
	}
	return r.Spec.Shape.More
}

// wantedSwitches reads --switches back; the wait is negative if none was given.
func wantedSwitches(x *core.Extra) (n int32, wait int64, ok bool) {
	if x.Switches == "" {
		return 0, 0, false
	}
	n, wait, err := grammar.ParseSwitches(x.Switches)
	return n, wait, err == nil
}

// switchText is --switches as scontrol shows it: the count, and the time to wait if one was given.
func switchText(v string) string {
	n, wait, err := grammar.ParseSwitches(v)
	if err != nil || wait == grammar.Unlimited {
		return v
	}
	return strconv.Itoa(int(n)) + "@" + grammar.FormatClock(wait)
}
