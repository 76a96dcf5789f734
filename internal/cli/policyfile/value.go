package policyfile

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/grammar"
)

// read sets what to points to from a node.
func read(n *yaml.Node, to any) error {
	if n.Tag == "!!null" {
		return nil
	}
	switch to := to.(type) {
	case *core.TRES:
		t, err := readTRES(n)
		*to = t
		return err
	case rest:
		t, err := readTRES(n)
		if err != nil {
			return err
		}
		for _, a := range t {
			if err := addBudget(to.all, a); err != nil {
				return err
			}
		}
		return nil
	case *[]core.QOSName:
		words, err := readWords(n)
		for _, w := range words {
			*to = append(*to, core.QOSName(w))
		}
		return err
	case *core.QOSFlag:
		words, err := readWords(n)
		if err != nil {
			return err
		}
		*to, err = core.ParseQOSFlags(strings.Join(words, ","))
		return err
	}
	if n.Kind != yaml.ScalarNode {
		return fmt.Errorf("expected a single value")
	}
	return readScalar(n.Value, to)
}

func readScalar(text string, to any) (err error) {
	unlimited := text == "-1" || strings.EqualFold(text, "unlimited") || strings.EqualFold(text, "none")
	switch to := to.(type) {
	case *string:
		*to = text
	case *bool:
		*to, err = strconv.ParseBool(text)
	case *core.QOSName:
		*to = core.QOSName(text)
	case *core.Role:
		*to = core.Role(text)
	case *core.PreemptMode:
		*to = core.PreemptMode(strings.ToLower(text))
	case *int32:
		var n int64
		n, err = whole(text, math.MaxInt32)
		*to = int32(n)
	case part:
		if strings.EqualFold(text, "parent") {
			*to.n = core.SharesParent
			return nil
		}
		var n int64
		if n, err = whole(text, core.SharesParent); err == nil && n == 0 { // which the store takes for one that said nothing
			err = fmt.Errorf("shares must be 1 or more, or parent; the default is 1")
		}
		*to.n = int32(n)
	case *uint32:
		var n int64
		n, err = whole(text, math.MaxUint32-1)
		*to = uint32(n)
	case *float64:
		if *to, err = strconv.ParseFloat(text, 64); err != nil || *to < 0 || math.IsInf(*to, 0) || math.IsNaN(*to) {
			err = fmt.Errorf("%q is not a number of 0 or more", text)
		}
	case **float64:
		var n float64
		if n, err = strconv.ParseFloat(text, 64); err != nil || n < 0 || math.IsInf(n, 0) || math.IsNaN(n) {
			err = fmt.Errorf("%q is not a number of 0 or more", text)
		}
		*to = &n
	case **int64:
		if unlimited {
			return nil
		}
		var n int64
		n, err = whole(text, math.MaxInt64)
		*to = &n
	case minutes:
		if unlimited {
			return nil
		}
		var sec int64
		sec, err = grammar.ParseSpan(text)
		n := (sec + 59) / 60
		*to.n = &n
	case *core.Seconds:
		var sec int64
		sec, err = grammar.ParseSpan(text)
		*to = core.Seconds(sec)
	case budget:
		h, bad := strconv.ParseFloat(text, 64)
		if bad != nil || h < 0 || h > 1e12 || math.IsNaN(h) {
			return fmt.Errorf("%q is not a number of hours", text)
		}
		err = addBudget(to.all, core.Amount{Name: to.name, Count: int64(math.Round(h * 60))})
	default:
		panic(fmt.Sprintf("policyfile: a %T cannot be read", to))
	}
	return err
}

func addBudget(all *core.TRES, a core.Amount) error {
	if _, twice := all.Get(a.Name); twice {
		return fmt.Errorf("%s is limited twice, in %s and in grp_tres_mins", a.Name, budgets[a.Name])
	}
	*all = all.Plus(core.TRES{a}, 1)
	return nil
}

func whole(text string, most int64) (int64, error) {
	n, err := strconv.ParseInt(strings.ReplaceAll(text, "_", ""), 10, 64)
	if err != nil || n < 0 || n > most {
		return 0, fmt.Errorf("%q is not a whole number from 0 to %d", text, most)
	}
	return n, nil
}

func readWords(n *yaml.Node) ([]string, error) {
	switch n.Kind {
	case yaml.ScalarNode:
		return strings.FieldsFunc(n.Value, func(r rune) bool { return r == ',' || r == ' ' }), nil
	case yaml.SequenceNode:
		var out []string
		for _, item := range n.Content {
			if item.Kind != yaml.ScalarNode {
				return nil, fmt.Errorf("expected a list of words")
			}
			out = append(out, item.Value)
		}
		return out, nil
	}
	return nil, fmt.Errorf("expected a list of words")
}

// readTRES reads cpu=4,gres/gpu=2 or {cpu: 4, gpu: 2, "gpu:a100": 1, mem: 2T}.
func readTRES(n *yaml.Node) (core.TRES, error) {
	switch n.Kind {
	case yaml.ScalarNode:
		return core.ParseTRES(n.Value)
	case yaml.MappingNode:
	default:
		return nil, fmt.Errorf("expected resources such as {cpu: 4, gpu: 2} or cpu=4,gres/gpu=2")
	}
	parts := make([]string, 0, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, v := n.Content[i].Value, n.Content[i+1]
		if v.Kind != yaml.ScalarNode || strings.Contains(name+v.Value, ",") {
			return nil, fmt.Errorf("%s: expected an amount", name)
		}
		if name == "gpu" || strings.HasPrefix(name, "gpu:") {
			name = "gres/" + name
		}
		parts = append(parts, name+"="+v.Value)
	}
	return core.ParseTRES(strings.Join(parts, ","))
}

// write returns the node of what from points to; nil if it is not set.
func write(from any) *yaml.Node {
	switch v := from.(type) {
	case *string:
		return text(*v)
	case *bool:
		if !*v {
			return nil
		}
		return plain("true")
	case *core.QOSName:
		return text(string(*v))
	case *core.Role:
		return text(string(*v))
	case *core.PreemptMode:
		return text(string(*v))
	case *int32:
		return number(int64(*v))
	case part:
		if *v.n == core.SharesParent {
			return text("parent")
		}
		return number(int64(*v.n))
	case *uint32:
		return number(int64(*v))
	case *float64:
		if *v == 0 {
			return nil
		}
		return plain(strconv.FormatFloat(*v, 'g', -1, 64))
	case **float64:
		if *v == nil {
			return nil
		}
		return plain(strconv.FormatFloat(**v, 'g', -1, 64))
	case **int64:
		if *v == nil {
			return nil
		}
		return plain(strconv.FormatInt(**v, 10))
	case minutes:
		if *v.n == nil {
			return nil
		}
		return text(grammar.FormatClock(**v.n * 60))
	case *core.Seconds:
		if *v == 0 {
			return nil
		}
		return text(grammar.FormatClock(int64(*v)))
	case budget:
		if n, ok := v.all.Get(v.name); ok && n%60 == 0 {
			return plain(strconv.FormatInt(n/60, 10))
		}
		return nil
	case rest:
		var left core.TRES
		for _, a := range *v.all {
			if _, hours := budgets[a.Name]; !hours || a.Count%60 != 0 {
				left = append(left, a)
			}
		}
		return amounts(left)
	case *core.TRES:
		return amounts(*v)
	case *[]core.QOSName:
		words := make([]string, len(*v))
		for i, w := range *v {
			words[i] = string(w)
		}
		return list(words)
	case *core.QOSFlag:
		return list(v.Words())
	}
	panic(fmt.Sprintf("policyfile: a %T cannot be written", from))
}

func plain(s string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Value: s} }

// text quotes what YAML would take for something else than a text.
func text(s string) *yaml.Node {
	if s == "" {
		return nil
	}
	n := &yaml.Node{}
	n.SetString(s)
	return n
}

func number(n int64) *yaml.Node {
	if n == 0 {
		return nil
	}
	return plain(strconv.FormatInt(n, 10))
}

func list(words []string) *yaml.Node {
	if len(words) == 0 {
		return nil
	}
	n := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
	for _, w := range words {
		n.Content = append(n.Content, text(w))
	}
	return n
}

func amounts(t core.TRES) *yaml.Node {
	if len(t) == 0 {
		return nil
	}
	n := &yaml.Node{Kind: yaml.MappingNode, Style: yaml.FlowStyle}
	for _, a := range t {
		name := a.Name
		if strings.HasPrefix(name, "gres/gpu") {
			name = strings.TrimPrefix(name, "gres/")
		}
		count := strconv.FormatInt(a.Count, 10)
		if a.Name == "mem" || strings.HasPrefix(a.Name, "bb/") {
			count = mebibytes(a.Count)
		}
		n.Content = append(n.Content, text(name), plain(count))
	}
	return n
}

func mebibytes(n int64) string {
	units := "MGTP"
	for n != 0 && n%1024 == 0 && len(units) > 1 {
		n, units = n/1024, units[1:]
	}
	return strconv.FormatInt(n, 10) + units[:1]
}
