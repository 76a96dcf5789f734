package step

import (
	"bireme.dev/bireme/internal/step/mpi"
	"bireme.dev/bireme/internal/wire"
)

// openMeeting begins to serve PMI or PMIx, if the step's tasks want one.
func (s *step) openMeeting(tasks []wire.Task) error {
	m, err := mpi.Open(mpi.Config{
		Launch: s.l, Tasks: tasks,
		Send:  func(m wire.Meet, payload []byte) { s.k.send(wire.TypeMeet, m, payload) },
		Abort: func(message string) { s.terminate(end{cause: wire.CauseNone, message: message, grace: -1}) },
	})
	s.k.mu.Lock()
	s.pmi = m
	s.k.mu.Unlock()
	return err
}

// met takes srun's answer.
func (r requests) met(m wire.Meet, payload []byte) {
	r.k.mu.Lock()
	s := r.k.steps[m.Key]
	var p *mpi.Service
	if s != nil {
		p = s.pmi
	}
	r.k.mu.Unlock()
	p.Deliver(m, payload)
}
