package getopt

import (
	"fmt"
	"iter"
	"strings"
)

// Arg says whether an option takes a value.
type Arg uint8

const (
	NoArg       Arg = iota // --hold
	RequiredArg            // --mem=4G, --mem 4G, -N2, -N 2
	OptionalArg            // --nice, --nice=5; never the next word
)

// Option is one row of a command's table. Two rows with the same Key are one option under two
// names, and a prefix that fits both is not ambiguous.
type Option struct {
	Key   string // what callers switch on; Long when empty
	Long  string // without dashes; may be empty
	Short byte   // 0 for none
	Arg   Arg
}

func (o *Option) key() string {
	if o.Key != "" {
		return o.Key
	}
	if o.Long != "" {
		return o.Long
	}
	return string(rune(o.Short))
}

func (o *Option) sameAs(p *Option) bool { return o.key() == p.key() && o.Arg == p.Arg }

// Value is one option met on the command line.
type Value struct {
	Key    string
	Value  string
	Set    bool   // a value was given; tells --nice from --nice=
	Option string // in full, as messages name it: --nodes, or -N when the letter was typed
	Index  int    // of the word in the arguments that named it
}

// Parser is a table and the rule for operands.
type Parser struct {
	Options []Option
	Permute bool
}

// Error is a fault in the command line. Option is the one at fault, as in Value, or the text that
// names none.
type Error struct {
	Option string
	Index  int
	msg    string
}

func (e *Error) Error() string { return e.msg }

// Parse reads args (without the program's name) and returns the options in their order and the
// operands. At the first fault it returns what came before it together with an *Error.
func (p *Parser) Parse(args []string) (values []Value, operands []string, err error) {
	s := scan{p: p, args: args}
	for v, e := range s.values() {
		if e != nil {
			return values, s.operands, e
		}
		values = append(values, v)
	}
	return values, s.operands, nil
}

// scan is one walk over the arguments.
type scan struct {
	p        *Parser
	args     []string
	next     int
	operands []string
}

func (s *scan) values() iter.Seq2[Value, error] {
	return func(yield func(Value, error) bool) {
		for s.next < len(s.args) {
			word := s.args[s.next]
			s.next++
			switch {
			case word == "--":
				s.rest(s.next)
			case strings.HasPrefix(word, "--"):
				v, err := s.long(word[2:])
				if !yield(v, err) || err != nil {
					return
				}
			case len(word) > 1 && word[0] == '-':
				if !s.cluster(word, yield) {
					return
				}
			case s.p.Permute:
				s.operands = append(s.operands, word)
			default:
				s.rest(s.next - 1)
			}
		}
	}
}

// rest makes operands of all words from i on.
func (s *scan) rest(i int) {
	s.operands = append(s.operands, s.args[i:]...)
	s.next = len(s.args)
}

func (s *scan) fail(option, format string, args ...any) error {
	return &Error{Option: option, Index: s.next - 1, msg: fmt.Sprintf(format, args...)}
}

// long reads one long option; text is the word without its dashes.
func (s *scan) long(text string) (Value, error) {
	name, value, has := strings.Cut(text, "=")
	opt, err := s.find(name, text)
	if err != nil {
		return Value{}, err
	}
	v := Value{Key: opt.key(), Value: value, Set: has, Option: "--" + opt.Long, Index: s.next - 1}
	switch {
	case has && opt.Arg == NoArg:
		return Value{}, s.fail(v.Option, "option '%s' doesn't allow an argument", v.Option)
	case has || opt.Arg != RequiredArg:
		return v, nil
	case s.next == len(s.args):
		return Value{}, s.fail(v.Option, "option '%s' requires an argument", v.Option)
	}
	v.Value, v.Set = s.args[s.next], true
	s.next++
	return v, nil
}

// find returns the row that name stands for: the exact one, else the only one it is a prefix of.
func (s *scan) find(name, text string) (*Option, error) {
	var found *Option
	var others []string
	for i := range s.p.Options {
		opt := &s.p.Options[i]
		switch {
		case opt.Long == "" || !strings.HasPrefix(opt.Long, name):
		case opt.Long == name:
			return opt, nil
		case found == nil:
			found = opt
		case !opt.sameAs(found):
			others = append(others, opt.Long)
		}
	}
	typed := "--" + text
	switch {
	case found == nil:
		return nil, s.fail(typed, "unrecognized option '%s'", typed)
	case others == nil:
		return found, nil
	}
	var b strings.Builder
	for _, long := range append([]string{found.Long}, others...) {
		fmt.Fprintf(&b, " '--%s'", long)
	}
	return nil, s.fail(typed, "option '%s' is ambiguous; possibilities:%s", typed, b.String())
}

// cluster reads a word of short options; it returns false when the walk is over.
func (s *scan) cluster(word string, yield func(Value, error) bool) bool {
	at := s.next - 1
	for i := 1; i < len(word); i++ {
		c := word[i]
		opt := s.short(c)
		if opt == nil {
			yield(Value{}, &Error{
				Option: "-" + string(word[i:i+1]), Index: at,
				msg: "invalid option -- '" + word[i:i+1] + "'",
			})
			return false
		}
		v := Value{Key: opt.key(), Option: "-" + word[i:i+1], Index: at}
		switch {
		case opt.Arg == NoArg:
		case i+1 < len(word):
			v.Value, v.Set = word[i+1:], true
			i = len(word)
		case opt.Arg == RequiredArg && s.next == len(s.args):
			yield(Value{}, &Error{
				Option: v.Option, Index: at,
				msg: "option requires an argument -- '" + word[i:i+1] + "'",
			})
			return false
		case opt.Arg == RequiredArg:
			v.Value, v.Set = s.args[s.next], true
			s.next++
		}
		if !yield(v, nil) {
			return false
		}
	}
	return true
}

func (s *scan) short(c byte) *Option {
	for i := range s.p.Options {
		if opt := &s.p.Options[i]; opt.Short == c && c != 0 {
			return opt
		}
	}
	return nil
}
