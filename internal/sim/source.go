package sim

import (
	"cmp"
	"errors"
	"io"
	"slices"
)

// Source gives jobs by submit time; those of one instant in the order they are to be submitted.
type Source interface {
	// Next gives the next job, good until Next is called again, or io.EOF.
	Next() (*Job, error)
}

// sorted is a trace held in memory because its lines are not in order of submission.
type sorted struct {
	jobs []Job
	at   int
}

// Sorted reads the whole of a trace and gives its jobs by submit time, then by their order in the file.
func Sorted(t *Reader) (Source, error) {
	t.strict = false
	s := &sorted{}
	for {
		j, err := t.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		s.jobs = append(s.jobs, *j)
	}
	slices.SortStableFunc(s.jobs, func(a, b Job) int { return cmp.Compare(a.Submit, b.Submit) })
	return s, nil
}

func (s *sorted) Next() (*Job, error) {
	if s.at == len(s.jobs) {
		return nil, io.EOF
	}
	s.at++
	return &s.jobs[s.at-1], nil
}
