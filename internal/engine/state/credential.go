package state

import "bireme.dev/bireme/internal/engine/state/credentials"

// Inputs about secrets, repositories and keys.
type (
	PutCredential    credentials.Put    // Reply: nil.
	DropCredential   credentials.Drop   // Reply: nil.
	ResealCredential credentials.Reseal // Reply: nil. Nobody but the server itself asks for it.
)

func (*PutCredential) input()    {}
func (*DropCredential) input()   {}
func (*ResealCredential) input() {}

func (in *PutCredential) apply(s *State) (None, error) {
	return none, s.credentials.Put(&s.rec.Tables, (*credentials.Put)(in))
}

func (in *DropCredential) apply(s *State) (None, error) {
	return none, s.credentials.Drop(&s.rec.Tables, (*credentials.Drop)(in))
}

func (in *ResealCredential) apply(s *State) (None, error) {
	s.credentials.Reseal((*credentials.Reseal)(in))
	return none, nil
}
