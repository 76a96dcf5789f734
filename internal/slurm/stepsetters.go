package slurm

import (
	"time"

	"bireme.dev/bireme/internal/core/grammar"
)

// The meanings of options that only srun and salloc have.

func immediate(r *Request, v string) error {
	d := time.Second
	if v != "" {
		n, err := r.number("immediate", v, 0)
		if err != nil {
			return err
		}
		d = time.Duration(n) * time.Second
	}
	r.Ask.Immediate = &d
	return nil
}

func killOnBadExit(r *Request, v string) error {
	r.Step.KillGiven = true
	r.Step.KillOnBadExit = v != "0"
	return nil
}

func waitSeconds(r *Request, v string) error {
	n, err := r.number("wait", v, 0)
	r.Step.Wait = time.Duration(n) * time.Second
	return err
}

func relative(r *Request, v string) error {
	n, err := r.number("relative", v, 0)
	r.Step.Relative = int(n)
	return err
}

func killCommand(r *Request, v string) error {
	r.Step.KillCommand = true
	if v == "" {
		return nil
	}
	n, err := grammar.ParseSignal(v)
	if err != nil {
		return r.Fail(ExitError, "unrecognized signal %s", v)
	}
	r.Step.KillSignal = n
	return nil
}
