package slurm

import "bireme.dev/bireme/internal/core"

// The options that say which nodes a job gets.

// constraint keeps what does not parse, as prefer does: the server refuses it in its own words.
func constraint(r *Request, v string) error {
	r.extra.Constraint, _ = core.ParseConstraint(v)
	return nil
}

func prefer(r *Request, v string) error     { r.extra.Prefer, _ = core.ParseConstraint(v); return nil }
func contiguous(r *Request, _ string) error { r.extra.Contiguous = true; return nil }

func switches(r *Request, v string) error {
	l, err := core.ParseSwitchLimit(v)
	if err != nil {
		return r.Fail(ExitError, "Invalid numeric value %q for --switches.", v)
	}
	r.extra.Switches = l
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
