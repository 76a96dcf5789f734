package slurmsite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"bireme.dev/bireme/internal/cli/app"
)

// cutover is the step after which Slurm takes no more jobs, or its way back.
type cutover struct {
	*site
	dir string
	yes bool
}

// Step is one of them, and whether it was done.
type Step struct {
	Step   string `json:"step"`
	Action string `json:"action"` // do, done, yours
	Note   string `json:"note,omitempty"`
}

// saved is what cutover leaves for back: the partitions as they were.
type saved struct {
	Partitions map[string]string `json:"partitions"` // name: state
}

const savedName = "partitions.json"

func (s *site) cutoverCommand() *cobra.Command {
	o := &cutover{site: s}
	c := &cobra.Command{
		Use: "cutover --save FOLDER [-y]", Short: "Slurm takes no more jobs; what waits there is saved", Args: cobra.NoArgs,
		Long: `Show the steps of the change from Slurm to Bireme, and with -y do those that this command can do:
every partition of Slurm becomes INACTIVE (it takes no job and starts none; what runs goes on), and the
scripts of the jobs that wait are written to FOLDER, with the line that submitted each. They are submitted
here again by their users: Slurm does not tell the environment of a job. Steps that are yours are listed.
It can be repeated; partitions that were in another state than UP before stay noted, for "back".`,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.over(cmd.Context()) },
	}
	o.flags(c)
	return c
}

func (s *site) backCommand() *cobra.Command {
	o := &cutover{site: s}
	c := &cobra.Command{
		Use: "back --save FOLDER [-y]", Short: "Slurm takes jobs again", Args: cobra.NoArgs,
		Long: `Show the steps of the way back to Slurm, and with -y set every partition of Slurm to the state that
cutover found it in and noted in FOLDER. It can be repeated.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.back(cmd.Context()) },
	}
	o.flags(c)
	return c
}

func (o *cutover) flags(c *cobra.Command) {
	c.Flags().StringVar(&o.dir, "save", "", "`FOLDER` for what waits in Slurm and for the way back")
	c.Flags().BoolVarP(&o.yes, "yes", "y", false, "do it; without it the steps are only shown")
	_ = c.MarkFlagRequired("save")
}

// partitions asks Slurm for the states of its partitions.
func (o *cutover) partitions(ctx context.Context) (names []string, states map[string]string, err error) {
	text, err := o.slurm(ctx, "scontrol", "-a", "-o", "show", "partition")
	if err != nil {
		return nil, nil, err
	}
	states = map[string]string{}
	for line := range strings.Lines(text) {
		if f := fields(line); f["PartitionName"] != "" {
			names = append(names, f["PartitionName"])
			states[f["PartitionName"]] = f["State"]
		}
	}
	return names, states, nil
}

func (o *cutover) readSaved() (*saved, error) {
	out := &saved{Partitions: map[string]string{}}
	data, err := os.ReadFile(filepath.Join(o.dir, savedName))
	if errors.Is(err, fs.ErrNotExist) {
		return out, nil
	}
	if err == nil {
		err = json.Unmarshal(data, out)
	}
	if err != nil {
		return nil, app.Usagef("migrate: %s: %v", filepath.Join(o.dir, savedName), err)
	}
	return out, nil
}

func (o *cutover) over(ctx context.Context) error {
	names, states, err := o.partitions(ctx)
	if err != nil {
		return err
	}
	was, err := o.readSaved()
	if err != nil {
		return err
	}
	var steps []Step
	if o.yes {
		if err := os.MkdirAll(o.dir, 0o700); err != nil {
			return err
		}
		for _, n := range names {
			if _, known := was.Partitions[n]; !known { // of the first time: a repetition finds them INACTIVE
				was.Partitions[n] = states[n]
			}
		}
		data, err := json.MarshalIndent(was, "", "  ")
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(o.dir, savedName), append(data, '\n'), 0o600); err != nil {
			return err
		}
	}
	for _, n := range names {
		step, err := o.set(ctx, n, states[n], "INACTIVE")
		if err != nil {
			return err
		}
		steps = append(steps, step)
	}
	pending, err := o.savePending(ctx)
	if err != nil {
		return err
	}
	running, err := o.slurm(ctx, "squeue", "-ha", "-t", "R,S,CG", "-o", "%i")
	if err != nil {
		return err
	}
	steps = append(steps, pending...)
	steps = append(steps, Step{
		"wait for what runs", "yours",
		app.Plural(strings.Count(running, "\n"), "job") + " now: squeue -t R",
	},
		Step{"take the last jobs over", "yours", "mysqldump | bireme import slurmdbd - -y"},
		Step{"stop slurmctld and slurmd, start agents", "yours", "see docs/manual/moving-from-slurm.md"},
		Step{"put Bireme's commands before Slurm's", "yours", "bireme links FOLDER, first in PATH"},
		Step{"submit what waited again", "yours", "its users, from " + o.dir})
	return o.show(steps)
}

// set gives a partition a state.
func (o *cutover) set(ctx context.Context, name, is, want string) (Step, error) {
	step := Step{fmt.Sprintf("scontrol update PartitionName=%s State=%s", name, want), "do", "it is " + is}
	switch {
	case is == want:
		step.Action = "done"
	case o.yes:
		if _, err := o.slurm(ctx, "scontrol", "update", "PartitionName="+name, "State="+want); err != nil {
			return step, err
		}
		step.Action = "done"
		step.Note = "it was " + is
	}
	return step, nil
}

// savePending writes the script of each job that waits, and the line that submitted it.
func (o *cutover) savePending(ctx context.Context) (steps []Step, err error) {
	text, err := o.slurm(ctx, "squeue", "-ha", "-t", "PD", "-o", "%A|%u")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(text) {
		id, user, _ := strings.Cut(strings.TrimSpace(line), "|")
		if id == "" || strings.Trim(id, "0123456789") != "" {
			continue
		}
		step := Step{"save job " + id + " of " + user, "do", ""}
		if o.yes {
			if step.Note, err = o.saveJob(ctx, id, user); err != nil {
				return nil, err
			}
			step.Action = "done"
		}
		steps = append(steps, step)
	}
	return steps, nil
}

func (o *cutover) saveJob(ctx context.Context, id, user string) (string, error) {
	line, err := o.slurm(ctx, "sacct", "-XnP", "-j", id, "-o", "SubmitLine,WorkDir")
	if err != nil {
		return "", err
	}
	script, err := o.slurm(ctx, "scontrol", "write", "batch_script", id, "-")
	if err != nil { // an srun or salloc that waits has none
		return "no script: its srun or salloc waits for it", nil //nolint:nilerr // told in the step
	}
	first, _, _ := strings.Cut(line, "\n")
	name := filepath.Join(o.dir, user+"-"+id)
	if err := os.WriteFile(name+".sh", []byte(script), 0o600); err != nil {
		return "", err
	}
	return name + ".sh", os.WriteFile(name+".line", []byte(first+"\n"), 0o600)
}

func (o *cutover) back(ctx context.Context) error {
	names, states, err := o.partitions(ctx)
	if err != nil {
		return err
	}
	was, err := o.readSaved()
	if err != nil {
		return err
	}
	if len(was.Partitions) == 0 {
		return app.Usagef("migrate: %s: cutover has noted no partitions there", o.dir)
	}
	steps := []Step{
		{"drain Bireme's nodes, wait for what runs", "yours", "bireme drain NODES"},
		{
			"stop agents, start slurmd and slurmctld", "yours",
			"systemctl stop biremed-agent; systemctl start slurmd slurmctld",
		},
		{"take Bireme's commands out of PATH", "yours", "the folder of bireme links"},
	}
	for _, n := range names {
		want, known := was.Partitions[n]
		if !known {
			continue
		}
		step, err := o.set(ctx, n, states[n], want)
		if err != nil {
			return err
		}
		steps = append(steps, step)
	}
	return o.show(steps)
}

func (o *cutover) show(steps []Step) error {
	if o.json {
		return o.app.PrintJSON(struct {
			Steps []Step `json:"steps"`
		}{steps})
	}
	t := app.Table{{"STEP", "ACTION", "NOTE"}}
	for _, s := range steps {
		t.Row(s.Step, s.Action, orDash(s.Note))
	}
	if err := t.Write(o.app.Out); err != nil {
		return err
	}
	if !o.yes {
		o.app.Note("nothing was changed; -y does what is marked do")
	}
	return nil
}
