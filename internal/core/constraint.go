package core

import (
	"slices"
	"strings"

	"bireme.dev/bireme/internal/core/grammar"
)

// Constraint is what --constraint and --prefer ask of the features of a job's nodes.
type Constraint struct{ parsed[constraint] }

type constraint struct {
	expr *grammar.Constraint
	list []string
}

// ParseConstraint parses a constraint. What has a fault is returned with it.
func ParseConstraint(text string) (Constraint, error) {
	p, err := parseText(text, parseConstraint)
	return Constraint{p}, err
}

// UnmarshalText keeps the text and its fault, if it has one.
func (c *Constraint) UnmarshalText(text []byte) error {
	c.parsed, _ = parseText(string(text), parseConstraint)
	return nil
}

// Equal reports whether both have the same text.
func (c Constraint) Equal(o Constraint) bool { return c.String() == o.String() }

// Expr is what the constraint asks for; nil if there is none, or it has a fault.
func (c Constraint) Expr() *grammar.Constraint { return c.get().expr }

// Features lists the features of a constraint that is a plain list of them, all of which each node must have; nil of
// any other.
func (c Constraint) Features() []string { return c.get().list }

// IsMetBy reports whether a node has what the constraint asks of each node. None has what a faulty one asks.
func (c Constraint) IsMetBy(n *Node) bool {
	return c.Fault() == nil && (c.IsZero() || c.Expr().Meets(n.Features))
}

func parseConstraint(text string) (c constraint, err error) {
	if c.expr, err = grammar.ParseConstraint(text); err != nil {
		return c, err
	}
	if !strings.ContainsAny(text, "|[]*()! \t") {
		c.list = slices.Collect(strings.FieldsFuncSeq(text, func(r rune) bool { return r == '&' || r == ',' }))
	}
	return c, nil
}
