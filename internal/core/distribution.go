package core

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Distribution says how tasks are distributed over nodes, over the sockets of each and over their cores, as
// --distribution writes it: cyclic:block,pack.
type Distribution struct{ parsed[distribution] }

type distribution struct {
	levels [3]Spread
	plane  int32
	mode   PackMode
}

// Spread is how tasks are distributed at one level.
type Spread uint8

// The ways.
const (
	SpreadDefault   Spread = iota
	SpreadBlock            // one after the other: the first is filled before the second
	SpreadCyclic           // to each in turn
	SpreadFCyclic          // to each in turn, CPU by CPU
	SpreadPlane            // over nodes: to each in turn, several at a time
	SpreadArbitrary        // over nodes: a list has the node of each task
)

// PackMode says whether nodes are filled one after the other.
type PackMode uint8

// The modes.
const (
	PackDefault PackMode = iota
	Pack
	NoPack
)

// Of each level the words that are known there, by Spread; a star is its default.
var spreadWords = [3][]string{
	{"*", "block", "cyclic", "", "plane", "arbitrary"},
	{"*", "block", "cyclic", "fcyclic"},
	{"*", "block", "cyclic", "fcyclic"},
}

var packModes = map[string]PackMode{"pack": Pack, "nopack": NoPack}

// ParseDistribution parses a distribution, in any case. What has a fault is returned with it.
func ParseDistribution(text string) (Distribution, error) {
	p, err := parseText(text, parseDistribution)
	return Distribution{p}, err
}

// UnmarshalText keeps the text and its fault, if it has one.
func (d *Distribution) UnmarshalText(text []byte) error {
	d.parsed, _ = parseText(string(text), parseDistribution)
	return nil
}

// Equal reports whether both have the same text.
func (d Distribution) Equal(o Distribution) bool { return d.String() == o.String() }

// OverNodes is how tasks are distributed over nodes.
func (d Distribution) OverNodes() Spread { return d.get().levels[0] }

// OverSockets is how the tasks of a node are distributed over its sockets.
func (d Distribution) OverSockets() Spread { return d.get().levels[1] }

// OverCores is how the tasks of a socket are distributed over its cores.
func (d Distribution) OverCores() Spread { return d.get().levels[2] }

// Plane is how many tasks in turn a node gets of SpreadPlane.
func (d Distribution) Plane() int32 { return d.get().plane }

// Packing says whether nodes are filled one after the other.
func (d Distribution) Packing() PackMode { return d.get().mode }

func parseDistribution(text string) (d distribution, err error) {
	if text == "" {
		return d, nil
	}
	words, mode, both := strings.Cut(strings.ToLower(text), ",")
	if !both && packModes[words] != PackDefault {
		d.mode = packModes[words]
		return d, nil
	}
	if d.mode = packModes[mode]; both && d.mode == PackDefault {
		return d, badDistribution(text, mode)
	}
	for i, level := range strings.Split(words, ":") {
		word, size, sized := strings.Cut(level, "=")
		way := -1
		if i < len(spreadWords) && word != "" {
			way = slices.Index(spreadWords[i], word)
		}
		if way < 0 || sized != (word == "plane") {
			return d, badDistribution(text, level)
		}
		if d.levels[i] = Spread(way); sized {
			n, err := strconv.ParseInt(size, 10, 64)
			if err != nil || n < 1 {
				return d, badDistribution(text, level)
			}
			d.plane = int32(min(n, math.MaxInt32))
		}
	}
	return d, nil
}

func badDistribution(text, word string) error {
	return fmt.Errorf("distribution %.80q: %.80q is unknown there; it is block, cyclic, plane=N or arbitrary over nodes, "+
		"then :block, :cyclic or :fcyclic over sockets and over cores, then ,pack or ,nopack", text, word)
}
