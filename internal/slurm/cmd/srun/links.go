package srun

import "bireme.dev/bireme/internal/wire"

// links carry the frames of all parts of a step.
type links []*link

// partFrame is a frame of a part.
type partFrame struct {
	part int
	wire.Frame
}

// start begins to read and gives what comes. All ends with close.
func (l links) start() (<-chan partFrame, <-chan error) {
	frames, broken := make(chan partFrame), make(chan error, len(l)) // each link breaks once
	for _, one := range l {
		one.frames, one.broken = frames, broken
		one.start()
	}
	return frames, broken
}

// Send sends a frame to all nodes of all parts.
func (l links) Send(t wire.Type, header any, payload ...[]byte) error {
	for _, one := range l {
		if err := one.Send(t, header, payload...); err != nil {
			return err
		}
	}
	return nil
}

// room waits until not too much waits to be sent.
func (l links) room() {
	for _, one := range l {
		one.room()
	}
}

func (l *links) close() {
	for _, one := range *l {
		one.close()
	}
}

// ranks are those of all tasks of all parts.
func (s *run) ranks() []int32 {
	var list []int32
	for _, p := range s.parts {
		for _, ranks := range p.made.Ranks {
			list = append(list, ranks...)
		}
	}
	return list
}
