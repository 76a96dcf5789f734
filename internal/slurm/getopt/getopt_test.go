package getopt

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var table = []Option{
	{Long: "account", Short: 'A', Arg: RequiredArg},
	{Long: "gpu-bind", Arg: RequiredArg},
	{Long: "gpus", Short: 'G', Arg: RequiredArg},
	{Long: "gpus-per-node", Arg: RequiredArg},
	{Long: "hold", Short: 'H'},
	{Long: "immediate", Short: 'I', Arg: OptionalArg},
	{Long: "mem", Arg: RequiredArg},
	{Long: "mem-per-cpu", Arg: RequiredArg},
	{Long: "nice", Arg: OptionalArg},
	{Key: "nodelist", Long: "node", Arg: RequiredArg},
	{Key: "nodelist", Long: "nodelistx", Short: 'w', Arg: RequiredArg},
	{Long: "ntasks", Short: 'n', Arg: RequiredArg},
	{Key: "nodes", Short: 'N', Arg: RequiredArg},
	{Long: "verbose", Short: 'v'},
}

// show writes what Parse returned on one line: options, then operands after a bar.
func show(values []Value, operands []string, err error) string {
	var w []string
	for _, v := range values {
		switch {
		case v.Set:
			w = append(w, v.Option+":"+v.Key+"="+v.Value)
		default:
			w = append(w, v.Option+":"+v.Key)
		}
	}
	if err != nil {
		return strings.Join(append(w, err.Error()), " ")
	}
	return strings.Join(append(append(w, "|"), operands...), " ")
}

func TestParse(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"":                       "|",
		"job.sh -N 2":            "| job.sh -N 2",
		"-N2 job.sh":             "-N:nodes=2 | job.sh",
		"-N 2 -n4 -Hv job.sh -v": "-N:nodes=2 -n:ntasks=4 -H:hold -v:verbose | job.sh -v",
		"-HN2":                   "-H:hold -N:nodes=2 |",
		"-HN 2":                  "-H:hold -N:nodes=2 |",
		"--mem=4G --mem 5G":      "--mem:mem=4G --mem:mem=5G |",
		"--mem=":                 "--mem:mem= |",
		"--mem --hold":           "--mem:mem=--hold |",
		"--mem-p=1":              "--mem-per-cpu:mem-per-cpu=1 |",
		"--hol":                  "--hold:hold |",
		"--ni 5":                 "--nice:nice | 5",
		"--nice=5":               "--nice:nice=5 |",
		"--nice=":                "--nice:nice= |",
		"-I30 -I 30":             "-I:immediate=30 -I:immediate | 30",
		"--nod=a":                "--node:nodelist=a |",
		"--nodelistx=a":          "--nodelistx:nodelist=a |",
		"--gpus=2":               "--gpus:gpus=2 |",
		"-v -- -v x":             "-v:verbose | -v x",
		"-v -":                   "-v:verbose | -",
		"--nonsense sleep.sh":    "unrecognized option '--nonsense'",
		"--nonsense=3":           "unrecognized option '--nonsense=3'",
		"-v --hold=3":            "-v:verbose option '--hold' doesn't allow an argument",
		"--ho=3":                 "option '--hold' doesn't allow an argument",
		"--mem":                  "option '--mem' requires an argument",
		"--nod":                  "option '--node' requires an argument",
		"-N":                     "option requires an argument -- 'N'",
		"-HN":                    "-H:hold option requires an argument -- 'N'",
		"-Z":                     "invalid option -- 'Z'",
		"-HZ":                    "-H:hold invalid option -- 'Z'",
		"-=":                     "invalid option -- '='",
		"--gpu=3":                "option '--gpu=3' is ambiguous; possibilities: '--gpu-bind' '--gpus' '--gpus-per-node'",
		"--n":                    "option '--n' is ambiguous; possibilities: '--nice' '--node' '--nodelistx' '--ntasks'",
	} {
		p := Parser{Options: table}
		if got := show(p.Parse(strings.Fields(line))); got != want {
			t.Errorf("%s\n got %s\nwant %s", line, got, want)
		}
	}
}

func TestPermute(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"12 -v 13 --mem=1": "-v:verbose --mem:mem=1 | 12 13",
		"12 -- -v":         "| 12 -v",
		"- -v":             "-v:verbose | -",
		"12 --bad":         "unrecognized option '--bad'",
	} {
		p := Parser{Options: table, Permute: true}
		if got := show(p.Parse(strings.Fields(line))); got != want {
			t.Errorf("%s\n got %s\nwant %s", line, got, want)
		}
	}
}

func TestErrorNamesItsPlace(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]Error{
		"-v --nonsense=3": {Option: "--nonsense=3", Index: 1},
		"-v -H --mem":     {Option: "--mem", Index: 2},
		"-v -HZ":          {Option: "-Z", Index: 1},
		"-n 1 -N":         {Option: "-N", Index: 2},
	} {
		p := Parser{Options: table}
		_, _, err := p.Parse(strings.Fields(line))
		var got *Error
		if !errors.As(err, &got) || got.Option != want.Option || got.Index != want.Index {
			t.Errorf("%s: %#v, want %s at %d", line, got, want.Option, want.Index)
		}
	}
}

// TestSpellings holds that every way to write a list of options reads the same.
func TestSpellings(t *testing.T) {
	t.Parallel()
	type given struct{ Key, Value string }
	rapid.Check(t, func(t *rapid.T) {
		var args []string
		var want []given
		for range rapid.IntRange(0, 6).Draw(t, "n") {
			o := rapid.SampledFrom(table).Draw(t, "option")
			g := given{Key: o.key()}
			if o.Arg != NoArg {
				g.Value = rapid.StringMatching(`[a-z0-9=-]{1,4}`).Draw(t, "value")
			}
			want = append(want, g)
			short := o.Long == "" || o.Short != 0 && rapid.Bool().Draw(t, "short")
			apart := o.Arg == RequiredArg && rapid.Bool().Draw(t, "apart")
			switch {
			case short && apart:
				args = append(args, "-"+string(rune(o.Short)), g.Value)
			case short:
				args = append(args, "-"+string(rune(o.Short))+g.Value)
			case apart:
				args = append(args, "--"+o.Long, g.Value)
			case o.Arg == NoArg:
				args = append(args, "--"+o.Long)
			default:
				args = append(args, "--"+o.Long+"="+g.Value)
			}
		}
		operands := []string{"job.sh", "-v"}
		p := Parser{Options: table}
		values, rest, err := p.Parse(append(slices.Clone(args), operands...))
		if err != nil {
			t.Fatalf("%q: %v", args, err)
		}
		var got []given
		for _, v := range values {
			got = append(got, given{v.Key, v.Value})
		}
		if diff := cmp.Diff(want, got); diff != "" || !slices.Equal(rest, operands) {
			t.Fatalf("%q: operands %q, -want +got\n%s", args, rest, diff)
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add("-N2 --mem=3 x", true)
	f.Add("--gpu -Z -- -", false)
	f.Fuzz(func(t *testing.T, line string, permute bool) {
		args := strings.Split(line, " ")
		p := Parser{Options: table, Permute: permute}
		values, operands, err := p.Parse(args)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.Index < 0 || e.Index >= len(args) || e.Error() == "" {
				t.Fatalf("error without a place: %#v", err)
			}
			return
		}
		for _, v := range values {
			if v.Key == "" || !strings.HasPrefix(args[v.Index], "-") {
				t.Fatalf("%q: %+v does not come from an option", args, v)
			}
		}
		if !permute && !slices.Equal(operands, args[len(args)-len(operands):]) {
			t.Fatalf("%q: operands %q are not its tail", args, operands)
		}
	})
}
