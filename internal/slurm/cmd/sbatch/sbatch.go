// Package sbatch is the command that submits a batch script.
package sbatch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/plain"
	"bireme.dev/bireme/internal/core/secretarg"
	"bireme.dev/bireme/internal/slurm"
	"bireme.dev/bireme/internal/slurm/cmd"
)

// maxScript is the greatest script that is read; the server has a setting of its own.
const maxScript = 4 << 20

// Run is the command.
func Run(ctx context.Context, w *cmd.World, args []string) int {
	all, script, err := prepare(w, args)
	if err != nil {
		return w.Complain(err)
	}
	r := all[0]
	switch {
	case r.Ask.Version:
		return w.PrintVersion()
	case r.Ask.Help:
		fmt.Fprint(w.Out, slurm.Manual(slurm.Sbatch).Help())
		return 0
	case r.Ask.Usage:
		fmt.Fprint(w.Out, slurm.Manual(slurm.Sbatch).Usage())
		return 0
	case r.Ask.Explain != "":
		fmt.Fprint(w.Out, r.Ask.Explain)
		return 0
	}
	if r.Ask.ScriptFile != "" {
		if script, err = insertFile(r, script); err != nil {
			return w.Complain(err)
		}
	}
	if err := w.Verbose(r); err != nil {
		return w.Complain(err)
	}
	var components []core.Spec
	for i, part := range all {
		warnings, err := part.Finish()
		if err != nil {
			return w.Complain(err)
		}
		for _, line := range warnings {
			fmt.Fprintln(w.Err, line)
		}
		if i > 0 {
			components = append(components, part.Spec)
		}
	}
	env := r.JobEnviron(w.Environ, cmd.ThisProcess())
	c, err := w.Client()
	if err != nil {
		w.Errorf("%v", err)
		return slurm.ExitError
	}
	cluster, err := w.Among(ctx, c, r)
	if err != nil {
		return w.Complain(err)
	}
	sub := &client.Submit{Spec: r.Spec, Script: string(script), Env: env, Components: components, Unsaid: unsaid(r)}
	if r.Ask.TestOnly {
		return w.Try(ctx, c, sub)
	}
	out, err := c.Submit(ctx, sub)
	if err != nil {
		return refused(ctx, w, c, err, &r.Spec)
	}
	w.Told(out, r.Ask.Quiet)
	switch {
	case r.Ask.Parsable:
		fmt.Fprintln(w.Out, strings.TrimSuffix(fmt.Sprintf("%d;%s", out.ID, cluster), ";"))
	case !r.Ask.Quiet && cluster != "":
		fmt.Fprintf(w.Out, "Submitted batch job %d on cluster %s\n", out.ID, cluster)
	case !r.Ask.Quiet:
		fmt.Fprintf(w.Out, "Submitted batch job %d\n", out.ID)
	}
	if r.Ask.Wait {
		return wait(ctx, w, c, out.ID)
	}
	return 0
}

// insertFile puts the text of --bbf after the first line of the script, as Slurm does where no plug-in reads it.
func insertFile(r *slurm.Request, script []byte) ([]byte, error) {
	text, err := os.ReadFile(r.Path(r.Ask.ScriptFile))
	if err != nil {
		return nil, r.Fail(slurm.ExitError, "Invalid --bbf specification")
	}
	first, rest, _ := bytes.Cut(script, []byte("\n"))
	if len(text) > 0 && text[len(text)-1] != '\n' {
		text = append(text, '\n')
	}
	return slices.Concat(first, []byte("\n"), text, rest), nil
}

// refused prints why the server would not take the job.
func refused(ctx context.Context, w *cmd.World, c *client.Client, err error, s *core.Spec) int {
	if core.ReasonOf(err) == slurm.ReasonInvalidGres {
		w.Errorf("%s", slurm.ErrorText(err))
		return slurm.ExitError
	}
	for _, line := range slurm.ErrorPreface(err, s) {
		w.Errorf("%s", line)
	}
	w.Errorf("Batch job submission failed: %s", slurm.ErrorText(err))
	w.HintOfSubmit(ctx, c, err)
	return slurm.ExitError
}

// prepare reads options and script. The command line is read first to find the script, then all sources in the order of
// their strength. A het job has a request for each component.
func prepare(w *cmd.World, args []string) ([]*slurm.Request, []byte, error) {
	probe, parts, rest, err := split(w, args)
	if err != nil {
		return nil, nil, err
	}
	if probe.Ask.Version || probe.Ask.Help || probe.Ask.Usage || probe.Ask.Explain != "" {
		return []*slurm.Request{probe}, nil, nil
	}
	if w.Dir == "" {
		return nil, nil, probe.Fail(slurm.ExitError, cmd.NoDir)
	}
	name, path, script, err := findScript(w, probe, rest)
	if err != nil {
		return nil, nil, err
	}
	if bad := slurm.CheckScript(script); bad != nil {
		c := &slurm.Complaint{Exit: slurm.ExitError}
		for _, line := range bad {
			c.Lines = append(c.Lines, w.Name+": error: "+line)
		}
		return nil, nil, c
	}
	count := len(parts)
	if probe.Ask.Wrap == nil {
		n, err := probe.ScriptParts(name, script)
		if err != nil {
			return nil, nil, err
		}
		count = max(count, n)
	}
	var all []*slurm.Request
	for k := range count {
		r := slurm.NewRequest(slurm.Sbatch, w.Now(), w.Dir)
		r.ReadFile = os.ReadFile
		value, ignore := w.Lookup("SBATCH_IGNORE_PBS")
		r.Ask.IgnorePBS = probe.Ask.IgnorePBS || ignore && slurm.FlagOn(value)
		if k > 0 {
			if err := r.Inherit(all[0]); err != nil {
				return nil, nil, err
			}
		}
		if probe.Ask.Wrap == nil {
			if err := r.ScriptPart(name, script, k); err != nil {
				return nil, nil, err
			}
		}
		if err := r.Environ(w.Lookup); err != nil {
			return nil, nil, err
		}
		if k < len(parts) {
			if _, err := r.Args(parts[k]); err != nil {
				return nil, nil, err
			}
		}
		shown := path
		// listings name it as seen from where the job runs
		if dir := r.WorkDir(); path != "" && dir != w.Dir && !filepath.IsAbs(rest[0]) {
			if shown = filepath.Join(dir, rest[0]); !isFile(shown) {
				shown = rest[0]
			}
		}
		complete(w, r, name, shown, args)
		if len(rest) > 1 {
			r.Spec.Args = rest[1:]
		}
		all = append(all, r)
	}
	return all, script, nil
}

// split cuts the command line at each ":" that stands where a script could: what follows is another component. It
// returns the first one's request, the words of each, and what follows the options of the last.
func split(w *cmd.World, args []string) (first *slurm.Request, parts [][]string, rest []string, err error) {
	for {
		r := slurm.NewRequest(slurm.Sbatch, w.Now(), w.Dir)
		r.ReadFile = os.ReadFile
		if rest, err = r.Args(args); err != nil {
			return nil, nil, nil, err
		}
		if first == nil {
			first = r
		} else if r.Ask.Wrap != nil {
			first.Ask.Wrap = r.Ask.Wrap
		}
		parts = append(parts, args[:len(args)-len(rest)])
		if len(rest) == 0 || rest[0] != ":" {
			return first, parts, rest, nil
		}
		args = rest[1:]
	}
}

func isFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular()
}

// complete fills in what the script's name and the command's place decide.
func complete(w *cmd.World, r *slurm.Request, name, path string, args []string) {
	s := &r.Spec
	s.Kind = core.Batch
	if s.Name == "" {
		s.Name = name
	}
	s.From = core.Origin{Host: w.Host, Dir: w.Dir, Command: path, Line: line(w.Name, args), Sid: cmd.Session()}
	if s.IO.Stdout == "" {
		s.IO.Stdout = "slurm-%j.out"
		if s.Array != "" {
			s.IO.Stdout = "slurm-%A_%a.out"
		}
	}
}

// line is the submit line as sacct shows it.
func line(name string, args []string) string {
	text := name + " " + strings.Join(secretarg.Mask(args), " ")
	return text[:min(len(text), 1<<20)]
}

// findScript gives the script's name for the job, its path for listings ("" for none) and its text.
func findScript(w *cmd.World, r *slurm.Request, rest []string) (name, path string, script []byte, err error) {
	if r.Ask.Wrap != nil {
		if len(rest) > 0 {
			return "", "", nil, r.Fail(slurm.ExitError, "Script arguments not permitted with --wrap option")
		}
		return "wrap", "", slurm.WrapScript(*r.Ask.Wrap), nil
	}
	if len(rest) == 0 {
		script, err = readLimited(w.In)
		if err != nil {
			return "", "", nil, r.Fail(slurm.ExitError, "Unable to read the script from standard input: %v", err)
		}
		return "sbatch", "", script, nil
	}
	path = searchScript(rest[0], r.WorkDir(), w.Dir, w.Getenv("PATH"))
	f, err := os.Open(path)
	if err != nil {
		return "", "", nil, r.Fail(slurm.ExitError, "Unable to open file %s", rest[0])
	}
	defer f.Close()
	if script, err = readLimited(f); err != nil {
		return "", "", nil, r.Fail(slurm.ExitError, "Unable to read file %s: %v", rest[0], cause(err))
	}
	return plain.Cell(filepath.Base(rest[0])), path, script, nil
}

func cause(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

func readLimited(r io.Reader) ([]byte, error) {
	var b bytes.Buffer
	if _, err := io.Copy(&b, io.LimitReader(r, maxScript+1)); err != nil {
		return nil, err
	}
	if b.Len() > maxScript {
		return nil, fmt.Errorf("it has more than %d bytes", maxScript)
	}
	return b.Bytes(), nil
}

// searchScript finds the script as Slurm does: a path as it is, a name in the working directory, else in PATH.
func searchScript(name, workDir, dir, path string) string {
	switch {
	case filepath.IsAbs(name):
		return name
	case strings.HasPrefix(name, "."):
		return filepath.Join(dir, name)
	}
	for _, d := range append([]string{workDir, dir}, filepath.SplitList(path)...) {
		p := filepath.Join(d, name)
		if st, err := os.Stat(p); err == nil && st.Mode().IsRegular() {
			return p
		}
	}
	return filepath.Join(dir, name)
}

// unsaid are the words that the site's settings decide, as no option does.
func unsaid(r *slurm.Request) (words []string) {
	if !r.Given("requeue") && !r.Given("no-requeue") {
		words = append(words, client.UnsaidRequeue)
	}
	if !r.Given("open-mode") {
		words = append(words, client.UnsaidAppend)
	}
	return words
}
