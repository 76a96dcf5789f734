package multicall

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/slurm/cmd"
)

// Every command has a page, every option on it a text, and --help, --usage and the page name them all.
func TestManuals(t *testing.T) {
	t.Parallel()
	var names []string
	for _, p := range Manuals() {
		names = append(names, p.Name)
		if p.About == "" || len(p.Rows) < 3 {
			t.Errorf("%s: %q, %d options", p.Name, p.About, len(p.Rows))
		}
		run, ok := Lookup(p.Name)
		if !ok {
			t.Errorf("there is no command %s", p.Name)
			continue
		}
		help, usage := output(t, run, p.Name, "--help"), output(t, run, p.Name, "--usage")
		page := p.Roff()
		if !strings.HasPrefix(page, ".TH "+strings.ToUpper(p.Name)+" 1 ") ||
			!strings.Contains(page, ".SH NAME\n"+p.Name+" \\- ") {
			t.Errorf("%s: the page begins with %.80q", p.Name, page)
		}
		for _, r := range p.Rows {
			if r.Text == "" || r.Arg != 0 && r.Value == "" {
				t.Errorf("%s --%s: text %q, value %q", p.Name, r.Long, r.Text, r.Value)
			}
			option := "--" + r.Long
			if !strings.Contains(help, option) || !strings.Contains(page, strings.ReplaceAll(option, "-", `\-`)) {
				t.Errorf("%s: help or page do not name %s", p.Name, option)
			}
			if short := "[-" + string(rune(r.Short)); !strings.Contains(usage, option) &&
				(r.Short == 0 || !strings.Contains(usage, short)) {
				t.Errorf("%s: --usage does not name %s:\n%s", p.Name, option, usage)
			}
		}
	}
	slices.Sort(names)
	if all := Names(); !slices.Equal(names, all) {
		t.Errorf("pages %q, commands %q", names, all)
	}
}

func output(t *testing.T, run cmd.Func, name, option string) string {
	t.Helper()
	var out, errs bytes.Buffer
	w := &cmd.World{
		Name: name, In: strings.NewReader(""), Out: &out, Err: &errs, Dir: "/", Now: cmd.Real(name).Now,
		Client: func() (*client.Client, error) { t.Errorf("%s %s asks the server", name, option); return nil, nil },
	}
	if code := run(context.Background(), w, []string{option}); code != 0 || errs.Len() > 0 {
		t.Errorf("%s %s: %d %s", name, option, code, errs.String())
	}
	return out.String()
}
