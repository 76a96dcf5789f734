package slurm

import (
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
