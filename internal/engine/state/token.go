package state

import (
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state/people"
)

type (
	// RevokeToken ends a token, and with it the tokens that were made with it. Reply: nil.
	RevokeToken struct {
		By core.Identity
		ID string
	}
	// RevokeJWTs ends the JWTs of a user that were made until now. Reply: nil.
	RevokeJWTs struct {
		By   core.Identity
		User core.UserName
	}
	// RotateToken gives a token another secret. The old one works for Overlap more; tokens that were made with it end with
	// it. Reply: *core.Token.
	RotateToken struct {
		By      core.Identity
		ID      string
		Hash    core.Hash
		Overlap core.Seconds
		Expires core.Time // its new end; 0: none
	}
	// TokensUsed records when tokens were last used. Reply: nil.
	TokensUsed struct{ Uses []TokenUse }
	// PurgeTokens deletes at most Max tokens that have not worked since Before. Reply: *Purged.
	PurgeTokens struct {
		Before core.Time
		Max    int
	}
)

// TokenUse is when a token was last used.
type TokenUse = people.TokenUse

// Purged is how many tokens were deleted, and whether there are more to delete.
type Purged = people.Purged

func (*RevokeToken) input() {}
func (*RevokeJWTs) input()  {}
func (*RotateToken) input() {}
func (*TokensUsed) input()  {}
func (*PurgeTokens) input() {}

func (in *PutToken) apply(s *State) (None, error) {
	return none, s.people.CreateToken(in.By, in.Token, s.cfg.MaxTokens)
}

func (in *RevokeToken) apply(s *State) (None, error) {
	t, err := s.people.FindToken(in.By, in.ID)
	if err != nil || t.Revoked {
		return none, err
	}
	s.people.Revoke(t)
	if t.Kind == "join" {
		s.nodes.RevokeJoined(t)
	}
	return none, nil
}

func (in *RevokeJWTs) apply(s *State) (None, error) {
	return none, s.people.RevokeJWTs(in.By, in.User)
}

func (in *RotateToken) apply(s *State) (*core.Token, error) {
	return s.people.Rotate((*people.Rotation)(in))
}

func (in *TokensUsed) apply(s *State) (None, error) {
	s.people.NoteUses(in.Uses)
	return none, nil
}

// apply deletes tokens that have not worked for long. The join token of a node that exists stays: revoking it revokes
// the node.
func (in *PurgeTokens) apply(s *State) (*Purged, error) {
	return s.people.Purge(in.Before, in.Max, s.nodes.JoinedBy), nil
}

func (in *UseToken) apply(s *State) (*core.Token, error) {
	t, err := s.people.CheckJoin(in.ID, in.Node)
	if err != nil {
		return nil, err
	}
	if err := in.pin(s, t); err != nil {
		return nil, err
	}
	return s.people.MarkUsed(t, in.Node), nil
}
