package moving

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"bireme.dev/bireme/internal/cli/app"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/slurm/conf"
	"bireme.dev/bireme/internal/translate"
)

type convertOptions struct {
	app    *app.App
	output string
	force  bool
	json   bool
	stock  bool
	from   string
}

// The forms that a file can have.
const (
	formScript = "sbatch"
	formYAML   = "yaml"
	formSite   = "slurm.conf"
)

// maxFile bounds what is read.
const maxFile = 4 << 20

// ConvertCommand is bireme convert.
func ConvertCommand(a *app.App) *cobra.Command {
	o := &convertOptions{app: a}
	c := &cobra.Command{
		Use: "convert FILE", Short: "turn batch scripts into YAML, and back", Args: cobra.ExactArgs(1),
		Long: `Turn a batch script into a YAML configuration, a configuration (type: task or
dev-environment) into a batch script or a call of salloc, or a slurm.conf into settings,
projects and fleets. What has no equal on the other side is listed on standard error and
in comments at the head of the output; the way back takes it from there. FILE - is
standard input. A slurm.conf becomes several files: -o names their folder.

Nothing is asked of a server. The exit status is 0 also where something has no equal; 2
where the file cannot be read; 6 where the output exists and --force is not given.`,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	f := c.Flags()
	f.StringVarP(&o.output, "output", "o", "", "write `FILE` instead of standard output")
	f.BoolVar(&o.force, "force", false, "write over files that are there")
	f.BoolVar(&o.json, "json", false, "print output and notes as JSON")
	f.BoolVar(&o.stock, "stock", false, "write a configuration that dstack's own client takes: additions as tags")
	f.StringVar(&o.from, "from", "", "`FORM` of the file: sbatch, yaml or slurm.conf; usually seen from its name and text")
	return c
}

func (o *convertOptions) run(_ context.Context, file string) error {
	src, name, err := o.read(file)
	if err != nil {
		return err
	}
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	opts := translate.Options{Name: name, Dir: dir, Now: o.app.Now(), Stock: o.stock}
	form := o.from
	if form == "" {
		form = formOf(file, src)
	}
	var out *translate.Result
	switch form {
	case formScript:
		out, err = translate.Script(src, opts)
	case formYAML:
		out, err = translate.Configuration(src, opts)
	case formSite:
		out, err = o.site(file, opts)
	default:
		return app.Usagef("convert: --from: %q is not one of sbatch, yaml and slurm.conf", form)
	}
	if err != nil {
		return err
	}
	return o.write(out)
}

func (o *convertOptions) read(file string) (src []byte, name string, err error) {
	in, name := io.Reader(o.app.In), "standard input"
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, "", unreadable(file, err)
		}
		defer f.Close()
		in, name = f, filepath.Base(file)
	}
	src, err = io.ReadAll(io.LimitReader(in, maxFile+1))
	if err != nil {
		return nil, "", unreadable(file, err)
	}
	if len(src) > maxFile {
		return nil, "", app.Usagef("convert: %s: is more than %d MiB", file, maxFile>>20)
	}
	return src, name, nil
}

func unreadable(file string, err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return app.Usagef("convert: %s: %s", file, pe.Err)
	}
	return err
}

// formOf sees what a file is: a script begins with #!, a slurm.conf has its name or its keys, all else is YAML.
func formOf(file string, src []byte) string {
	base := strings.ToLower(filepath.Base(file))
	switch ext := filepath.Ext(base); {
	case bytes.HasPrefix(src, []byte("#!")), ext == ".sbatch", ext == ".sh", ext == ".slurm", ext == ".batch":
		return formScript
	case ext == ".yml", ext == ".yaml":
		return formYAML
	case ext == ".conf":
		return formSite
	}
	for _, key := range []string{"\nNodeName=", "\nPartitionName=", "\nClusterName="} {
		if bytes.Contains(append([]byte("\n"), src...), []byte(key)) {
			return formSite
		}
	}
	return formYAML
}

// site reads a slurm.conf with the files beside it.
func (o *convertOptions) site(file string, opts translate.Options) (*translate.Result, error) {
	if file == "-" {
		return nil, app.Usagef("convert: slurm.conf is read with the files beside it; name it instead of -")
	}
	c, err := conf.Read(file)
	if err != nil {
		return nil, unreadable(file, err)
	}
	if len(c.Nodes)+len(c.Partitions)+len(c.Settings) == 0 {
		return nil, app.Usagef("convert: %s: has no setting, node or partition of slurm.conf", file)
	}
	return translate.Site(c, opts)
}

// write hands out the result: files first, so that nothing is said of what was not written.
func (o *convertOptions) write(out *translate.Result) error {
	if o.output != "" {
		files := []translate.File{{Name: o.output, Text: out.Output}}
		if out.Files != nil {
			files = nil
			for _, f := range out.Files {
				files = append(files, translate.File{Name: filepath.Join(o.output, f.Name), Text: f.Text})
			}
			if err := os.MkdirAll(o.output, 0o777); err != nil {
				return unreadable(o.output, err)
			}
		}
		if err := o.store(files); err != nil {
			return err
		}
	}
	if o.json {
		return o.app.PrintJSON(out)
	}
	for _, n := range out.Notes {
		o.app.Note("%s %s: %s", word[n.Kind], n.Name, n.Text)
	}
	if o.output != "" {
		return nil
	}
	_, err := io.WriteString(o.app.Out, out.Output)
	return err
}

// word begins the line of a note.
var word = map[translate.NoteKind]string{
	translate.NoEqual: "no equal:", translate.Differs: "differs:", translate.Variable: "variable:",
}

// store writes files. Without --force none is written where one of them exists.
func (o *convertOptions) store(files []translate.File) error {
	for _, f := range files {
		if _, err := os.Lstat(f.Name); err == nil && !o.force {
			return core.Errorf(core.Conflict, "%s is there already; --force writes over it", f.Name)
		}
	}
	for _, f := range files {
		mode := fs.FileMode(0o666)
		if strings.HasPrefix(f.Text, "#!") {
			mode = 0o777
		}
		if err := os.WriteFile(f.Name, []byte(f.Text), mode); err != nil {
			return unreadable(f.Name, err)
		}
	}
	return nil
}
