package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/grammar"
	"bireme.dev/bireme/internal/core/nearest"
	"bireme.dev/bireme/internal/dstack/config/tree"
)

// additionReader reads Bireme's additions.
type additionReader struct{ *reader }

// TagPrefix begins the tags by which stock clients write additions: the tag bireme-partition is the key partition.
const TagPrefix = "bireme-"

// additionKeys are the keys in the order their tags are written in.
var additionKeys = []string{
	"array", "depends_on", "partition", "qos", "account", "time", "deadline", "begin", "constraint", "switches", "requeue",
	"checkpoint", "runtime",
}

// AdditionKeys lists Bireme's own keys of a run.
func AdditionKeys() []string { return slices.Clone(additionKeys) }

// checkpointKeys are the keys of checkpoint; each has a tag of its own.
var checkpointKeys = []string{"signal", "grace", "saved_file"}

// additions reads Bireme's keys, from the file and from tags. In the normal form they are tags.
func (r additionReader) additions(f *fields, tags *Tags) Additions {
	before := len(r.faults)
	var a Additions
	r.addition(f, &a)
	written := a
	r.fromTags(f, *tags, &a)
	if a.Runtime == core.RuntimeProcess {
		for _, key := range []string{"image", "python", "nvcc", "docker"} {
			if f.on(key) {
				f.failAt(key, "needs a container; it cannot be combined with runtime: process")
			}
		}
	}
	if len(r.faults) > before {
		return a
	}
	for _, t := range written.tags() {
		if _, there := tags.Get(t.Name); !there {
			*tags = append(*tags, t)
		}
	}
	return a
}

// fromTags reads the tags with our prefix as if they were keys.
func (r additionReader) fromTags(f *fields, tags Tags, a *Additions) {
	n := f.n.Get("tags")
	if n == nil || n.Form != tree.Mapping {
		return
	}
	keys := &tree.Node{Form: tree.Mapping, Line: n.Line, Column: n.Column}
	p := f.p.key("tags")
	for _, e := range n.Keys {
		name, ours := strings.CutPrefix(e.Key.Plain(), TagPrefix)
		if !ours || e.Value.Form != tree.Text {
			continue
		}
		key := strings.ReplaceAll(name, "-", "_")
		part, isPart := strings.CutPrefix(key, "checkpoint_")
		known := !isPart && slices.Contains(additionKeys, key) || isPart && slices.Contains(checkpointKeys, part)
		if !known {
			r.fail(e.Key, p.key(e.Key.Plain()), typeValue, "unknown addition%s", nearest.Hint(key, additionKeys))
			continue
		}
		if f.n.Get(key) != nil || isPart && f.n.Get("checkpoint") != nil {
			r.fail(e.Key, p.key(e.Key.Plain()), typeValue, "the key %s says this already", strings.SplitN(key, "_", 2)[0])
			continue
		}
		text, err := fromTag(key, e.Value.Text)
		if err != nil {
			r.fail(e.Value, p.key(e.Key.Plain()), typeValue, "%s", err.Error())
			continue
		}
		v := &tree.Node{Form: tree.Text, Text: text, Line: e.Value.Line, Column: e.Value.Column}
		if !isPart {
			keys.Keys = append(keys.Keys, tree.Entry{Key: &tree.Node{Form: tree.Text, Text: key}, Value: v})
			continue
		}
		c := keys.Get("checkpoint")
		if c == nil {
			c = &tree.Node{Form: tree.Mapping, Line: v.Line, Column: v.Column}
			keys.Keys = append(keys.Keys, tree.Entry{Key: &tree.Node{Form: tree.Text, Text: "checkpoint"}, Value: c})
		}
		c.Keys = append(c.Keys, tree.Entry{Key: &tree.Node{Form: tree.Text, Text: part}, Value: v})
	}
	if len(keys.Keys) > 0 {
		r.addition(&fields{r: r.reader, n: keys, p: p, tags: true}, a)
	}
}

// addition reads our keys of one mapping.
func (r additionReader) addition(f *fields, a *Additions) {
	a.Array = keep(a.Array, opt(f, "array", r.array))
	if d := opt(f, "depends_on", r.dependsOn); d != nil {
		a.Dependencies = *d
	}
	for key, to := range map[string]*string{"qos": &a.QOS, "account": &a.Account} {
		if s := opt(f, key, r.word1); s != nil {
			*to = *s
		}
	}
	if s := opt(f, "partition", r.partitions); s != nil {
		a.Partition = *s
	}
	if t := opt(f, "time", r.timeLimit); t != nil {
		a.Time = *t
	}
	for key, to := range map[string]*string{"deadline": &a.Deadline, "begin": &a.Begin} {
		if s := opt(f, key, r.moment); s != nil {
			*to = *s
		}
	}
	if s := opt(f, "constraint", r.constraint); s != nil {
		a.Constraint = *s
	}
	if s := opt(f, "switches", r.switches); s != nil {
		a.Switches = *s
	}
	a.Requeue = keep(a.Requeue, opt(f, "requeue", r.boolean))
	a.Checkpoint = keep(a.Checkpoint, opt(f, "checkpoint", r.checkpoint))
	if s := f.word("runtime", core.RuntimeProcess, core.RuntimeContainer); s != nil {
		a.Runtime = *s
	}
}

func keep[T any](old, found *T) *T {
	if found != nil {
		return found
	}
	return old
}

// written is a scalar as it stands in the file: Slurm's times are no numbers of YAML's.
func (r additionReader) written(n *tree.Node, p *path) (string, bool) {
	if n.Raw != "" && n.Form != tree.List && n.Form != tree.Mapping {
		return n.Raw, true
	}
	return r.text(n, p)
}

// grammar reads a text that must fit one of core's grammars.
func (r additionReader) grammar(n *tree.Node, p *path, check func(string) error) (string, bool) {
	s, ok := r.written(n, p)
	if !ok {
		return "", false
	}
	if err := check(s); err != nil {
		r.fail(n, p, typeValue, "%s", err.Error())
		return "", false
	}
	return s, true
}

func (r additionReader) array(n *tree.Node, p *path) (a grammar.Array, ok bool) {
	_, ok = r.grammar(n, p, func(s string) (err error) {
		a, err = grammar.ParseArray(s)
		return err
	})
	return a, ok
}

func (r additionReader) moment(n *tree.Node, p *path) (string, bool) {
	return r.grammar(n, p, func(s string) error {
		_, err := Moment(s, time.Unix(0, 0).UTC())
		return err
	})
}

func (r additionReader) constraint(n *tree.Node, p *path) (c core.Constraint, ok bool) {
	_, ok = r.grammar(n, p, func(s string) (err error) {
		c, err = core.ParseConstraint(s)
		return err
	})
	return c, ok
}

func (r additionReader) switches(n *tree.Node, p *path) (l core.SwitchLimit, ok bool) {
	_, ok = r.grammar(n, p, func(s string) (err error) {
		l, err = core.ParseSwitchLimit(s)
		return err
	})
	return l, ok
}

// timeLimit reads a limit as --time does, or a duration such as 36h, or off.
func (r additionReader) timeLimit(n *tree.Node, p *path) (t core.Seconds, ok bool) {
	if n.Form == tree.Bool && !n.Truth {
		return core.Forever, true
	}
	_, ok = r.grammar(n, p, func(s string) error {
		if s == "off" || strings.EqualFold(s, "UNLIMITED") || strings.EqualFold(s, "INFINITE") {
			t = core.Forever
			return nil
		}
		sec, err := grammar.ParseSpan(s)
		if err == nil && sec == 0 {
			return fmt.Errorf("must be more than 0; use off for no limit")
		}
		t = core.Seconds(sec)
		return err
	})
	return t, ok
}

var nameForm = lazy(`^[^\s,]+$`)

// word1 reads a name without blanks and commas.
func (r additionReader) word1(n *tree.Node, p *path) (string, bool) {
	s, ok := r.text(n, p)
	if ok && !nameForm().MatchString(s) {
		r.fail(n, p, typeValue, "must be a name, not %s", tree.Quote(s))
		return "", false
	}
	return s, ok
}

// partitions reads names: a list, or a text with commas.
func (r additionReader) partitions(n *tree.Node, p *path) (string, bool) {
	var names []string
	if n.Form == tree.List {
		r.list(n, p, func(n *tree.Node, p *path) {
			if s, ok := r.word1(n, p); ok {
				names = append(names, s)
			}
		})
	} else if s, ok := r.text(n, p); ok {
		names = strings.Split(s, ",")
	}
	for _, name := range names {
		if !nameForm().MatchString(name) {
			r.fail(n, p, typeValue, "must be a partition or several separated by commas, not %s", n.Describe())
			return "", false
		}
	}
	return strings.Join(names, ","), len(names) > 0
}

// dependsOn reads Slurm's grammar, with names of runs where it has numbers, or a list of such items.
func (r additionReader) dependsOn(n *tree.Node, p *path) (d Dependencies, ok bool) {
	if n.Form == tree.List {
		ok = r.list(n, p, func(n *tree.Node, p *path) {
			if s, ok := r.written(n, p); ok {
				r.dependency(n, p, s, &d)
			}
		})
		return d, ok && len(d.List) > 0
	}
	s, ok := r.written(n, p)
	if !ok {
		return d, false
	}
	sep := ","
	if strings.Contains(s, "?") {
		sep, d.Any = "?", true
	}
	for _, item := range strings.Split(s, sep) {
		r.dependency(n, p, strings.TrimSpace(item), &d)
	}
	return d, len(d.List) > 0
}

var (
	jobForm = lazy(`^[0-9]+(_[0-9]+)?(\+[0-9]+)?$`)
	runForm = lazy(`^[a-z][a-z0-9-]{1,40}$`)
)

// dependency reads [WHEN:]JOB[:JOB…]. A bare run means afterok, a bare number afterany as in Slurm.
func (r additionReader) dependency(n *tree.Node, p *path, s string, d *Dependencies) {
	parts := strings.Split(s, ":")
	when := core.NeedKind(strings.ToLower(parts[0]))
	switch when {
	case core.NeedSingleton:
		if len(parts) == 1 {
			d.List = append(d.List, Dependency{When: when})
			return
		}
	case core.NeedAfter, core.NeedAfterAny, core.NeedAfterOK, core.NeedAfterNotOK, core.NeedAfterCorr:
		if len(parts) > 1 {
			parts = parts[1:]
		}
	default:
		when = ""
	}
	for _, part := range parts {
		x := Dependency{When: when}
		switch {
		case jobForm().MatchString(part):
			if x.Job = part; when == "" {
				x.When = core.NeedAfterAny
			}
			if _, err := grammar.ParseDependency(string(x.When) + ":" + part); err != nil {
				r.fail(n, p, typeValue, "%s", err.Error())
				return
			}
		case runForm().MatchString(part):
			if x.Run = part; when == "" {
				x.When = core.NeedAfterOK
			}
		default:
			r.fail(n, p, typeValue, "%s must be RUN or CONDITION:RUN, with a run's name or a job's number; conditions: after, "+
				"afterany, afterok, afternotok, aftercorr; or singleton", tree.Quote(s))
			return
		}
		d.List = append(d.List, x)
	}
}

// checkpoint reads a signal, or a mapping with signal, grace and saved_file.
func (r additionReader) checkpoint(n *tree.Node, p *path) (c Checkpoint, ok bool) {
	if n.Form != tree.Mapping {
		c.Signal, ok = r.signal(n, p)
		return c, ok
	}
	f := &fields{r: r.reader, n: n, p: p}
	c.Signal = Value(opt(f, "signal", r.signal))
	if d := opt(f, "grace", r.seconds); d != nil {
		if c.Grace = core.Seconds(*d); c.Grace <= 0 {
			f.failAt("grace", "must be more than 0")
		}
	}
	c.SavedFile = Value(f.optText("saved_file"))
	f.done()
	return c, true
}

func (r additionReader) signal(n *tree.Node, p *path) (sig int, ok bool) {
	_, ok = r.grammar(n, p, func(s string) (err error) {
		sig, err = grammar.ParseSignal(s)
		return err
	})
	return sig, ok
}

// tagOf is the tag that stands for a key.
func tagOf(key string) string { return TagPrefix + strings.ReplaceAll(key, "_", "-") }

// tags writes the additions as stock clients do.
func (a *Additions) tags() (tags Tags) {
	add := func(key, value string) {
		if value != "" {
			tags = append(tags, Tag{tagOf(key), toTag(key, value)})
		}
	}
	if a.Array != nil {
		add("array", a.Array.String())
	}
	depends, _ := a.Dependencies.Text(func(run string) (string, error) { return run, nil }) // names stay
	add("depends_on", depends)
	add("partition", a.Partition)
	add("qos", a.QOS)
	add("account", a.Account)
	switch {
	case a.Time == core.Forever:
		add("time", "off")
	case a.Time > 0:
		add("time", strconv.FormatInt(int64(a.Time), 10)+"s")
	}
	add("deadline", a.Deadline)
	add("begin", a.Begin)
	add("constraint", a.Constraint.String())
	add("switches", a.Switches.String())
	if a.Requeue != nil {
		add("requeue", strconv.FormatBool(*a.Requeue))
	}
	if c := a.Checkpoint; c != nil {
		if c.Signal > 0 {
			add("checkpoint_signal", grammar.SignalName(c.Signal))
		}
		if c.Grace > 0 {
			add("checkpoint_grace", strconv.FormatInt(int64(c.Grace), 10)+"s")
		}
		add("checkpoint_saved_file", c.SavedFile)
	}
	add("runtime", a.Runtime)
	return tags
}

// spelled are the words for characters that a tag's value must not have.
var spelled = map[string]*strings.Replacer{
	"array":      strings.NewReplacer(",", " ", "%", "@"),
	"partition":  strings.NewReplacer(",", " "),
	"depends_on": strings.NewReplacer(",", " ", "?", " or "),
	"constraint": strings.NewReplacer("&", " and ", "|", " or "),
}

var unspelled = map[string]*strings.Replacer{
	"array":      strings.NewReplacer(" ", ",", "@", "%"),
	"partition":  strings.NewReplacer(" ", ","),
	"depends_on": strings.NewReplacer(" or ", "?", " ", ","),
	"constraint": strings.NewReplacer(" and ", "&", " or ", "|"),
}

// toTag spells a value in the characters of a tag; any other is =XX, its bytes in hexadecimal.
func toTag(key, value string) string {
	value = strings.ReplaceAll(value, "=", "=3D")
	if s := spelled[key]; s != nil {
		value = s.Replace(value)
	}
	var b strings.Builder
	for i := range len(value) {
		c := value[i]
		if c < 0x80 && (c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' || strings.IndexByte(" .:/=_-+@", c) >= 0) {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "=%02X", c)
		}
	}
	return b.String()
}

// fromTag is the inverse of toTag.
func fromTag(key, value string) (string, error) {
	if s := unspelled[key]; s != nil {
		value = s.Replace(value)
	}
	var b strings.Builder
	for {
		before, after, found := strings.Cut(value, "=")
		b.WriteString(before)
		if !found {
			return b.String(), nil
		}
		c, err := strconv.ParseUint(after[:min(2, len(after))], 16, 8)
		if err != nil || len(after) < 2 {
			return "", fmt.Errorf("= must be followed by two hexadecimal digits, such as =2C for a comma")
		}
		b.WriteByte(byte(c))
		value = after[2:]
	}
}
