package multicall

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/slurm/cmd"
	"bireme.dev/bireme/internal/slurm/manual"
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
			short := "[-" + string(rune(r.Short))
			if !manual.Styled(p.Name) && !strings.Contains(usage, option) && (r.Short == 0 || !strings.Contains(usage, short)) {
				t.Errorf("%s: --usage does not name %s:\n%s", p.Name, option, usage)
			}
		}
	}
	slices.Sort(names)
	if all := Names(); !slices.Equal(names, all) {
		t.Errorf("pages %q, commands %q", names, all)
	}
}

// TestHelpMarks has the lines of Slurm 22.05.8 that people and programs look for (all.help).
func TestHelpMarks(t *testing.T) {
	t.Parallel()
	const options, commands = "\n    Valid <OPTION> values are:\n", "\n  Valid <COMMAND> values are:\n"
	marks := map[string][]string{
		"squeue --help": {
			"^Usage: squeue [OPTIONS]\n", "\n  -j, --jobs", "\n\nHelp options:\n  --help ", " show this help message\n",
			"\n  --usage ", " display a brief summary of squeue options\n",
		},
		"sinfo --help":    {"^Usage: sinfo [OPTIONS]\n", "\nHelp options:\n", " display brief usage message\n"},
		"scancel --help":  {"^Usage: scancel [OPTIONS] [job_id[_array_id][.step_id]]\n", "\nHelp options:\n"},
		"sprio --help":    {"^Usage: sprio [OPTIONS]\n", " display a brief summary of sprio options\n"},
		"sdiag --help":    {"^Usage: sdiag [OPTIONS]\n", "\nHelp options:\n"},
		"strigger --help": {"^Usage: strigger [--set | --get | --clear] [OPTIONS]\n", "\nHelp options:\n"},
		"sinfo --usage":   {"^Usage: sinfo [-", " [-p partition] ", " [-O Format] [--federation] [--local]\n$"},
		"scancel --usage": {"^Usage: scancel [-", " [job_id[_array_id][.step_id]]\n$"},
		"sprio --usage": {
			"^Usage: sprio [-j jid[s]] [-u user_name[s]] [-o format] [-p partitions]\n" +
				"   [--federation] [--local] [--sibling] [--usage] [-hlnvVw]\n$",
		},
		"sdiag --usage":    {"^Usage: sdiag [-M cluster] [-aritT]\n$"},
		"strigger --usage": {"^Usage: strigger [--set | --get | --clear | --version] [-aAbB"},
		"sacct --help":     {"^sacct [<OPTION>]\n", options, "\n     -D, --duplicates:\n"},
		"sacct --usage":    {"^Usage: sacct [options]\n\tUse --help for help\n$"},
		"sstat --help":     {"^sstat [<OPTION>] -j <job(.stepid)>\n", options, " -e, --helpformat:\n", " -j, --jobs:\n"},
		"sstat --usage":    {"^Usage: sstat [options] -j <job(.stepid)>\n\tUse --help for help\n$"},
		"sshare --help": {
			"^Usage:  sshare [OPTION]\n  Valid OPTIONs are:\n", "\n    -v or --verbose        display more information\n",
		},
		"scontrol --help": {
			"^scontrol [<OPTION>] [<COMMAND>]\n", options, commands,
			"\n     reconfigure              re-read configuration files.\n",
			"\n     version                  display tool version number.\n", "\n  <ENTITY> may be \"",
		},
		"sacctmgr --help": {
			"^sacctmgr [<OPTION>] [<COMMAND>]\n", options, commands, " commit changes immediately\n",
			"\n     version                  display tool version number.\n", "\n  <ENTITY> may be \"",
			"<SPECS> are different for each command entity pair", " add account ", " add cluster ", " list associations ",
			" modify cluster ", " delete qos ",
		},
		"sreport --help": {"^sreport [<OPTION>] [<COMMAND>]\n", options, commands, "\n  <ENTITY> may be \""},
	}
	checkMarks(t, marks)
	for _, name := range []string{"sshare", "scontrol", "sacctmgr", "sreport"} { // both options print the same
		run, _ := Lookup(name)
		if output(t, run, name, "--help") != output(t, run, name, "--usage") {
			t.Errorf("%s: --usage is not --help", name)
		}
	}
	for _, name := range []string{"squeue", "sinfo"} { // words in brackets, each an option
		run, _ := Lookup(name)
		rest := strings.TrimPrefix(output(t, run, name, "--usage"), "Usage: "+name)
		for _, word := range strings.Split(rest, "]")[:strings.Count(rest, "]")] {
			if word = strings.TrimSpace(word); !strings.HasPrefix(word, "[-") || strings.Count(word, "[") != 1 {
				t.Errorf("%s --usage: %q", name, word)
			}
		}
	}
}

// checkMarks runs commands with one option each, by their lines, and looks for texts in what they print. ^ and $ stand
// for its start and end.
func checkMarks(t *testing.T, marks map[string][]string) {
	t.Helper()
	for line, want := range marks {
		name, option, _ := strings.Cut(line, " ")
		run, ok := Lookup(name)
		if !ok {
			t.Fatal("there is no command ", name)
		}
		text := "^" + output(t, run, name, option) + "$"
		for _, mark := range want {
			if !strings.Contains(text, mark) {
				t.Errorf("%s has no %q:\n%s", line, mark, text)
			}
		}
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
