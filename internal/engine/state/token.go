package state

import (
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state/named"
)

type (
	// RevokeToken ends a token, and with it the tokens that were made with it. Reply: nil.
	RevokeToken struct {
		By core.Identity
		ID string
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
	// TokensUsed notes when tokens were last used. Reply: nil.
	TokensUsed struct{ Uses []TokenUse }
	// PurgeTokens forgets at most Max tokens that have not worked since Before. Reply: *Purged.
	PurgeTokens struct {
		Before core.Time
		Max    int
	}
)

// TokenUse is when a token was last used.
type TokenUse struct {
	ID string
	At core.Time
}

// Purged tells how many went, and whether there may be more.
type Purged struct {
	Removed int
	More    bool
}

func (*RevokeToken) input() {}
func (*RotateToken) input() {}
func (*TokensUsed) input()  {}
func (*PurgeTokens) input() {}

// isManager tells whether a caller has a manager's rights in a project: by role, and by the caller's token.
func (s *State) isManager(by core.Identity, project core.ProjectName) bool {
	return !by.Plain && s.view.Role(by.User, project).Rank() >= core.RoleManager.Rank()
}

// checkTokenProject refuses what a token of one project wants of another.
func checkTokenProject(by core.Identity, project core.ProjectName) error {
	if by.Project == "" || by.Project == project {
		return nil
	}
	return core.Errorf(core.Denied, "this token is limited to project %s", by.Project).Because("token_scope")
}

// apply stores a new token's hash. People make their own; join tokens are for administrators.
func (in *PutToken) apply(s *State) (None, error) {
	t := in.Token
	if t.Kind == "join" || t.User != in.By.User {
		if err := adminOnly(in.By, "may create or revoke such tokens"); err != nil {
			return none, err
		}
	}
	if t.Kind == "user" {
		if _, ok := s.view.users[t.User]; !ok {
			return none, core.Errorf(core.NotFound, "there is no user %q", t.User).Because("invalid_user")
		}
	}
	if _, ok := s.view.tokens[t.ID]; ok {
		return none, core.Errorf(core.Conflict, "token %s already exists", t.ID).Because("token_exists")
	}
	if err := s.checkToken(t); err != nil {
		return none, err
	}
	if err := s.limitByParent(in.By, t); err != nil {
		return none, err
	}
	if err := s.admitTokenCount(in.By, t); err != nil {
		return none, err
	}
	s.putTokenRecord(t)
	return none, nil
}

// checkToken checks what a token says.
func (s *State) checkToken(t *core.Token) error {
	var faults []core.Fault
	fault := func(path string, e *core.Error) { faults = append(faults, core.Fault{Path: path, Message: e.Message}) }
	if t.Name != "" && (len(t.Name) > core.MaxTokenName || !named.IsValid(t.Name)) {
		fault("name", core.Errorf(core.Invalid,
			"%.80q: a token's name has at most %d bytes, without blanks, commas, slashes, colons or control characters", t.Name,
			core.MaxTokenName))
	}
	if len(t.Note) > core.MaxTokenNote {
		fault("note", core.Errorf(core.Invalid, "%d bytes are too many; a token's note has at most %d", len(t.Note),
			core.MaxTokenNote))
	} else if !printable(t.Note) {
		fault("note", core.Errorf(core.Invalid, "%q: a token's note is text without control characters", t.Note))
	}
	for _, x := range t.Scopes {
		if !slices.Contains(core.Scopes(), x) {
			fault("scopes", core.Errorf(core.Invalid, "%.80q: expected read, submit, admin or project", x))
		}
	}
	if limited := slices.Contains(t.Scopes, core.ScopeProject); limited != (t.Project != "") {
		fault("project", core.Errorf(core.Invalid, "scope project needs a project, and a project needs scope project"))
	} else if limited && slices.Contains(t.Scopes, core.ScopeAdmin) {
		fault("scopes", core.Errorf(core.Invalid, "a token that is limited to one project cannot have scope admin"))
	}
	if len(t.Scopes) == 1 && t.Scopes[0] == core.ScopeProject {
		fault("scopes", core.Errorf(core.Invalid, "scope project only limits other scopes: add read or submit"))
	}
	if t.Project != "" {
		if _, ok := s.view.projects[t.Project]; !ok {
			fault("project", core.Errorf(core.Invalid, "there is no project %.80q", t.Project))
		}
	}
	if len(faults) == 0 {
		return nil
	}
	e := core.Errorf(core.Invalid, "%s: %s", faults[0].Path, faults[0].Message).Because("invalid_token")
	e.Faults = faults
	return e
}

func printable(text string) bool {
	return utf8.ValidString(text) && strings.IndexFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
}

// limitByParent sees to it that a token makes none that may do more, or for longer, than it may itself.
func (s *State) limitByParent(by core.Identity, t *core.Token) error {
	if by.Token == "" {
		return nil
	}
	parent, ok := s.view.tokens[by.Token]
	if !ok || parent.Dead(s.view.now) {
		return core.Errorf(core.Unknown, "this token was revoked or has expired").Because("bad_token")
	}
	if by.Prior {
		return core.Errorf(core.Denied, "the old secret of a rotated token cannot create tokens").Because("token_scope")
	}
	if t.Kind == "user" {
		switch right := t.Exceeds(parent); right {
		case "":
		case core.ScopeProject:
			return core.Errorf(core.Denied, "a token limited to project %s cannot create a token for more than that",
				parent.Project).Because("token_scope")
		default:
			return core.Errorf(core.Denied, "a token without scope %s cannot create one with it: this one has %s", right,
				parent.ScopeText()).Because("token_scope")
		}
	}
	if t.Outlives(parent) {
		return core.Errorf(core.Denied, "a token cannot create one that is valid longer than itself: this one expires at %s",
			parent.Expires.Go().UTC().Format("2006-01-02T15:04:05Z")).Because("token_scope")
	}
	t.Parent = parent.ID
	return nil
}

// admitTokenCount refuses what is over limits.tokens, and a name that another token of the user has. Of tokens that no
// longer work no more are kept than may work: making and revoking them in turn fills nothing.
func (s *State) admitTokenCount(by core.Identity, t *core.Token) error {
	if t.Kind != "user" {
		return nil
	}
	good := 0
	var dead []*core.Token
	for _, o := range s.view.tokens {
		switch {
		case o.Kind != "user" || o.User != t.User:
		case o.Dead(s.view.now):
			dead = append(dead, o)
		default:
			if good++; t.Name != "" && o.Name == t.Name {
				return core.Errorf(core.Conflict,
					"%s already has a token named %s (%s); rotate or revoke it, or use another name",
					t.User, t.Name, o.ID).Because("token_exists")
			}
		}
	}
	limit := s.cfg.MaxTokens
	if limit <= 0 {
		return nil
	}
	if good >= limit && !by.Admin {
		return core.Errorf(core.Exhausted, "%s has %d tokens; limits.tokens allows %d per user: revoke some first", t.User,
			good, limit).Because("token_limit")
	}
	sortByDeadSince(dead)
	for i := 0; i <= len(dead)-limit; i++ {
		s.deleteToken(dead[i])
	}
	return nil
}

// sortByDeadSince puts those first that have been dead for longest.
func sortByDeadSince(list []*core.Token) {
	slices.SortFunc(list, func(a, b *core.Token) int {
		if x, y := a.DeadSince(), b.DeadSince(); x != y {
			if x < y {
				return -1
			}
			return 1
		}
		return strings.Compare(a.ID, b.ID)
	})
}

// findToken finds a token that a caller may change: their own, or any for an administrator.
func (s *State) findToken(by core.Identity, id string) (*core.Token, error) {
	t, ok := s.view.tokens[id]
	if !ok || !by.Admin && (t.Kind != "user" || t.User != by.User) {
		return nil, core.Errorf(core.NotFound, "there is no token %.80q of yours", id).Because("invalid_token")
	}
	return t, nil
}

func (in *RevokeToken) apply(s *State) (None, error) {
	t, err := s.findToken(in.By, in.ID)
	if err != nil || t.Revoked {
		return none, err
	}
	s.endToken(t, s.view.now)
	if t.Kind == "join" {
		s.revokeJoinedNode(t)
	}
	return none, nil
}

// endToken ends a token at a moment, now or later, and with it those that were made with it.
func (s *State) endToken(t *core.Token, at core.Time) {
	next := *t
	if at <= s.view.now {
		next.Revoked, next.Ended = true, s.view.now
	} else {
		next.Expires = at
	}
	s.putTokenRecord(&next)
	s.endChildTokens(t.ID, at)
}

// endChildTokens ends what was made with a token. A node that has joined goes on: it is known by its key, not by its
// token.
func (s *State) endChildTokens(id string, at core.Time) {
	var made []*core.Token
	for _, o := range s.view.tokens {
		if o.Parent == id && !o.Revoked && o.Used == 0 && (o.Expires == 0 || o.Expires > at) {
			made = append(made, o)
		}
	}
	slices.SortFunc(made, func(a, b *core.Token) int { return strings.Compare(a.ID, b.ID) })
	for _, o := range made {
		s.endToken(o, at)
	}
}

func (in *RotateToken) apply(s *State) (*core.Token, error) {
	t, err := s.findToken(in.By, in.ID)
	if err != nil {
		return nil, err
	}
	switch {
	case t.Kind != "user":
		return nil, core.Errorf(core.Invalid, "token %s is a node's: make another one with `bireme token join`",
			t.ID).Because("invalid_token")
	case t.Dead(s.view.now):
		return nil, core.Errorf(core.Conflict,
			"token %s was revoked or has expired; make another one with `bireme token create`", t.ID).Because("invalid_token")
	}
	next := *t
	next.Expires = in.Expires
	if in.By.Token == t.ID { // by itself it may not last longer than it would have
		if in.By.Prior {
			return nil, core.Errorf(core.Denied, "the old secret of a rotated token cannot rotate tokens").Because("token_scope")
		}
		next.Expires = t.Expires
	} else if err := s.limitByParent(in.By, &next); err != nil {
		return nil, err
	}
	if made, ok := s.view.tokens[t.Parent]; ok && next.Outlives(made) {
		next.Expires = made.Expires
	}
	next.Parent = t.Parent
	next.Hash, next.Prior, next.PriorUntil, next.Rotated = in.Hash, core.Hash{}, 0, s.view.now
	until := s.view.now
	if in.Overlap > 0 {
		until = s.view.now.Add(in.Overlap.Duration())
		next.Prior, next.PriorUntil = t.Hash, until
	}
	s.putTokenRecord(&next)
	s.endChildTokens(t.ID, until)
	return &next, nil
}

// apply notes last uses. It is no change anybody watches for: there is no event.
func (in *TokensUsed) apply(s *State) (None, error) {
	for _, u := range in.Uses {
		t, ok := s.view.tokens[u.ID]
		if !ok || u.At <= t.LastUsed {
			continue
		}
		next := *t
		next.LastUsed = u.At
		s.ownTokens()
		s.view.addToken(&next)
		s.changes.Tokens = append(slices.DeleteFunc(s.changes.Tokens, func(o *core.Token) bool { return o.ID == t.ID }),
			&next)
	}
	return none, nil
}

// apply forgets what has not worked for long. The join token of a node that is there stays: the node is revoked
// by it.
func (in *PurgeTokens) apply(s *State) (*Purged, error) {
	var dead []*core.Token
	for _, t := range s.view.tokens {
		if end := t.DeadSince(); end != 0 && end < in.Before && end <= s.view.now && !s.joinedByToken(t) {
			dead = append(dead, t)
		}
	}
	sortByDeadSince(dead)
	out := &Purged{Removed: min(len(dead), in.Max), More: len(dead) > in.Max}
	for _, t := range dead[:out.Removed] {
		s.deleteToken(t)
	}
	return out, nil
}

// deleteToken forgets a token.
func (s *State) deleteToken(t *core.Token) {
	s.ownTokens()
	delete(s.view.tokens, t.ID)
	delete(s.view.tokensByHash, t.Hash)
	delete(s.view.tokensByHash, t.Prior)
	s.changes.Tokens = slices.DeleteFunc(s.changes.Tokens, func(o *core.Token) bool { return o.ID == t.ID })
	s.changes.GoneTokens = append(s.changes.GoneTokens, t.ID)
}

// ownTokens makes the maps of tokens this state's own before they are edited.
func (s *State) ownTokens() {
	if !s.owned.tokens {
		s.view.tokens, s.view.tokensByHash, s.owned.tokens = maps.Clone(s.view.tokens), maps.Clone(s.view.tokensByHash), true
	}
}
