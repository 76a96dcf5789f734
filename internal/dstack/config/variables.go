package config

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/dstack/config/tree"
)

// variableForm is the name of a variable between ${{ and }}: parts joined by dots, each with an index or without.
var variableForm = lazy(`^[a-zA-Z_][a-zA-Z0-9_\-]*(\[[0-9]+\])?(\.[a-zA-Z0-9_\-]+(\[[0-9]+\])?)*$`)

// Expand replaces each ${{ name }} by what value gives, and $$ by a dollar. Other dollars stay: they are the shell's. A
// variable for which value gives ok and keep stays as it is.
func Expand(s string, value func(name string) (text string, keep bool, err error)) (string, error) {
	if !strings.Contains(s, "$$") && !strings.Contains(s, "${{") {
		return s, nil
	}
	var b strings.Builder
	for {
		at := strings.IndexByte(s, '$')
		if at < 0 {
			b.WriteString(s)
			return b.String(), nil
		}
		b.WriteString(s[:at])
		s = s[at:]
		switch {
		case strings.HasPrefix(s, "$$"):
			b.WriteByte('$')
			s = s[2:]
		case strings.HasPrefix(s, "${{"):
			inside, rest, closed := strings.Cut(s[3:], "}}")
			if !closed {
				return "", fmt.Errorf("%s is not closed by }}", tree.Quote(s))
			}
			name := strings.TrimSpace(inside)
			if !variableForm().MatchString(name) {
				return "", fmt.Errorf("%s is not the name of a variable", tree.Quote(name))
			}
			text, keep, err := value(name)
			if err != nil {
				return "", err
			}
			if keep {
				text = s[:len(s)-len(rest)]
			}
			b.WriteString(text)
			s = rest
		default:
			b.WriteByte('$')
			s = s[1:]
		}
	}
}

// Options are what the caller adds to a configuration.
type Options struct {
	Env    []string // NAME=VALUE or NAME, which wins over the file's
	Lookup func(name string) (value string, ok bool)
	Args   []string // what ${{ run.args }} stands for
}

// Complete does what a client does before it sends a run: variables without a value take the caller's, ${{ run.args }}
// in commands and ${{ env.NAME }} in registry_auth and probes are replaced. The error is Faults.
func (c *Configuration) Complete(o Options) error {
	r := &reader{}
	env := c.environment()
	if env != nil {
		*env = c.resolve(r, *env, o)
	}
	if len(r.faults) > 0 {
		return r.err()
	}
	args := JoinWords(o.Args)
	c.eachText(func(of string, text *string, loc ...any) {
		out, err := Expand(*text, func(name string) (string, bool, error) {
			ns, key, _ := strings.Cut(name, ".")
			switch {
			case of == inCommands && name == "run.args":
				return args, false, nil
			case of == inCommands && strings.HasPrefix(name, "groups["),
				of == inAuth && ns == "secrets", of == inDomain && name == "run.project_name":
				return "", true, nil
			case (of == inAuth || of == inProbe) && ns == "env":
				if v, ok := env.Get(key); ok {
					return v, false, nil
				}
			}
			return "", false, unknownVariable(of, name)
		})
		if err != nil {
			r.fail(c.placeOf(loc...), c.pathOf(loc...), typeValue, "%s", err.Error())
			return
		}
		*text = out
	})
	return r.err()
}

// environment is the env of a run or a fleet.
func (c *Configuration) environment() *Env {
	switch {
	case c.Run() != nil:
		return &c.Run().Env
	case c.Fleet != nil:
		return &c.Fleet.Env
	case c.Preset != nil:
		return &c.Preset.Env
	}
	return nil
}

// Get gives the value of a variable that has one.
func (e *Env) Get(name string) (string, bool) {
	if e != nil {
		for i := range *e {
			if v := &(*e)[i]; v.Name == name && v.From == "" {
				return v.Value, true
			}
		}
	}
	return "", false
}

// resolve adds the caller's variables and gives those without a value theirs.
func (c *Configuration) resolve(r *reader, env Env, o Options) Env {
	env = slices.Clone(env)
	for _, s := range o.Env {
		name, value, has := strings.Cut(s, "=")
		if !envForm().MatchString(name) {
			r.fail(nil, &path{name: "-e " + tree.Clip(s)}, typeValue,
				"%s is not a variable's name: letters, digits and _, no digit first", tree.Quote(name))
			continue
		}
		v := Variable{Name: name, Value: value}
		if !has {
			v.From = name
		}
		if i := slices.IndexFunc(env, func(x Variable) bool { return x.Name == name }); i >= 0 {
			env[i] = v
		} else {
			env = append(env, v)
		}
	}
	for i := range env {
		v := &env[i]
		if v.From == "" {
			continue
		}
		value, ok := "", false
		if o.Lookup != nil {
			value, ok = o.Lookup(v.From)
		}
		if !ok {
			r.fail(c.placeOf("env", v.Name), c.pathOf("env"), typeValue,
				"%s has no value: set it in your environment or give -e %s=VALUE", v.From, v.From)
			continue
		}
		v.Value, v.From = value, ""
	}
	return env
}

// Where a text with variables is, for messages.
const (
	inCommands = "commands"
	inAuth     = "registry_auth"
	inProbe    = "probes"
	inEnv      = "env"
	inVolume   = "names of volumes"
	inDomain   = "domain"
)

var availableIn = map[string]string{
	inCommands: "${{ run.args }}, ${{ groups[i].nodes[j].IP_ADDRESS }}", inAuth: "${{ env.NAME }}, ${{ secrets.NAME }}",
	inProbe: "${{ env.NAME }}", inEnv: "${{ secrets.NAME }}", inVolume: "${{ dstack.node_rank }}, ${{ dstack.job_num }}",
	inDomain: "${{ run.project_name }}",
}

func unknownVariable(of, name string) error {
	ns, key, _ := strings.Cut(name, ".")
	switch {
	case of == inCommands && ns == "env":
		return fmt.Errorf("${{ %s }}: commands do not know it; write $%s", tree.Clip(name), tree.Clip(key))
	case of == inCommands && ns == "secrets":
		return fmt.Errorf("${{ %s }}: put it in env, commands then write its variable", tree.Clip(name))
	case ns == "env":
		return fmt.Errorf("${{ %s }}: env has no %s; a bare name there takes your value, or -e gives it", tree.Clip(name),
			tree.Clip(key))
	}
	return fmt.Errorf("${{ %s }}: unknown variable; available in %s: %s; write $$ for a dollar sign", tree.Clip(name), of,
		availableIn[of])
}

// eachText visits the texts in which a client replaces variables.
func (c *Configuration) eachText(visit func(of string, text *string, loc ...any)) {
	c.eachCommand(func(text *string, loc ...any) { visit(inCommands, text, loc...) })
	if run := c.Run(); run != nil && run.RegistryAuth != nil {
		visit(inAuth, &run.RegistryAuth.Username, "registry_auth", "username")
		visit(inAuth, &run.RegistryAuth.Password, "registry_auth", "password")
	}
	if c.Service != nil {
		for i := range c.Service.Probes {
			p := &c.Service.Probes[i]
			for key, text := range map[string]*string{"url": p.URL, "body": p.Body} {
				if text != nil {
					visit(inProbe, text, "probes", i, key)
				}
			}
			for j := range p.Headers {
				visit(inProbe, &p.Headers[j].Value, "probes", i, "headers", j, "value")
			}
		}
	}
	if c.Gateway != nil && c.Gateway.Domain != nil {
		visit(inDomain, c.Gateway.Domain, "domain")
	}
}

// eachCommand visits the commands of a run and of its groups.
func (c *Configuration) eachCommand(visit func(text *string, loc ...any)) {
	list := func(commands []string, loc ...any) {
		for i := range commands {
			visit(&commands[i], append(slices.Clone(loc), "commands", i)...)
		}
	}
	switch {
	case c.Task != nil:
		list(c.Task.Commands)
		for i := range c.Task.Groups {
			list(c.Task.Groups[i].Commands, "groups", i)
		}
	case c.Service != nil:
		list(c.Service.Commands)
		for i := range c.Service.Groups {
			list(c.Service.Groups[i].Commands, "groups", i)
		}
	}
}

// placeOf finds a value of the file for a message; what is not found is its nearest parent.
func (c *Configuration) placeOf(loc ...any) *tree.Node {
	n := c.root
	for _, step := range loc {
		var next *tree.Node
		switch s := step.(type) {
		case string:
			if n == nil {
				return nil
			}
			next = n.Get(s)
			if n.Form == tree.List { // env as a list
				for _, item := range n.Items {
					if name, _, _ := strings.Cut(item.Text, "="); name == s {
						next = item
					}
				}
			}
		case int:
			if n != nil && s < len(n.Items) {
				next = n.Items[s]
			}
		}
		if next == nil {
			return n
		}
		n = next
	}
	return n
}

func (c *Configuration) pathOf(loc ...any) *path {
	p := &path{name: string(c.Kind)}
	for _, step := range loc {
		if s, ok := step.(string); ok {
			p = p.key(s)
		} else {
			p = p.at(step.(int))
		}
	}
	return p
}

// GroupRef is a variable that stands for the address of a node or replica.
type GroupRef struct {
	Group   int
	Member  int
	Replica bool // of a service; else a node of a task
}

var groupRefForm = regexp.MustCompile(`^groups\[([0-9]+)\]\.(nodes|replicas)\[([0-9]+)\]\.IP_ADDRESS$`)

// ParseGroupRef reads groups[i].nodes[j].IP_ADDRESS and groups[i].replicas[j].IP_ADDRESS.
func ParseGroupRef(name string) (g GroupRef, ok bool) {
	m := groupRefForm.FindStringSubmatch(name)
	if m == nil {
		return g, false
	}
	group, err := strconv.Atoi(m[1])
	member, err2 := strconv.Atoi(m[3])
	return GroupRef{Group: group, Member: member, Replica: m[2] == "replicas"}, err == nil && err2 == nil
}
