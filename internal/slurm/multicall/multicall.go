// Package multicall gathers the Slurm commands under the names they answer to.
package multicall

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"bireme.dev/bireme/internal/core/plain"
	"bireme.dev/bireme/internal/slurm"
	"bireme.dev/bireme/internal/slurm/cmd"
	"bireme.dev/bireme/internal/slurm/cmd/sacct"
	"bireme.dev/bireme/internal/slurm/cmd/sacctmgr"
	"bireme.dev/bireme/internal/slurm/cmd/salloc"
	"bireme.dev/bireme/internal/slurm/cmd/sattach"
	"bireme.dev/bireme/internal/slurm/cmd/sbatch"
	"bireme.dev/bireme/internal/slurm/cmd/sbcast"
	"bireme.dev/bireme/internal/slurm/cmd/scancel"
	"bireme.dev/bireme/internal/slurm/cmd/scontrol"
	"bireme.dev/bireme/internal/slurm/cmd/scrontab"
	"bireme.dev/bireme/internal/slurm/cmd/sdiag"
	"bireme.dev/bireme/internal/slurm/cmd/seff"
	"bireme.dev/bireme/internal/slurm/cmd/sinfo"
	"bireme.dev/bireme/internal/slurm/cmd/sprio"
	"bireme.dev/bireme/internal/slurm/cmd/squeue"
	"bireme.dev/bireme/internal/slurm/cmd/sreport"
	"bireme.dev/bireme/internal/slurm/cmd/srun"
	"bireme.dev/bireme/internal/slurm/cmd/sshare"
	"bireme.dev/bireme/internal/slurm/cmd/sstat"
	"bireme.dev/bireme/internal/slurm/cmd/strigger"
	"bireme.dev/bireme/internal/slurm/getopt"
	"bireme.dev/bireme/internal/slurm/manual"
	"bireme.dev/bireme/internal/slurm/report"
)

// command is a Slurm command: what runs it, and the table of its options if it has one of its own.
type command struct {
	name    string
	run     cmd.Func
	options func() *getopt.Parser
	// listing: it prints other people's words, and nobody's program writes to its output.
	listing bool
	// signals: it handles signals itself, or leaves nothing behind when one ends it.
	signals bool
}

var commands = []command{
	{name: "sacct", run: sacct.Run, options: sacct.Options, listing: true, signals: true},
	{name: "sacctmgr", run: sacctmgr.Run, options: sacctmgr.Options, listing: true},
	{name: "salloc", run: salloc.Run, signals: true},
	{name: "sattach", run: sattach.Run, options: sattach.Options},
	{name: "sbatch", run: sbatch.Run, signals: true},
	{name: "sbcast", run: sbcast.Run, options: sbcast.Options},
	{name: "scancel", run: scancel.Run, options: scancel.Options, listing: true, signals: true},
	{name: "scontrol", run: scontrol.Run, options: scontrol.Options, listing: true, signals: true},
	{name: "scrontab", run: scrontab.Run, options: scrontab.Options},
	{name: "sdiag", run: sdiag.Run, options: sdiag.Options, listing: true, signals: true},
	{name: "seff", run: seff.Run, options: seff.Options, listing: true, signals: true},
	{name: "sinfo", run: sinfo.Run, options: sinfo.Options, listing: true, signals: true},
	{name: "sprio", run: sprio.Run, options: sprio.Options, listing: true, signals: true},
	{name: "squeue", run: squeue.Run, options: squeue.Options, listing: true, signals: true},
	{name: "sreport", run: sreport.Run, options: sreport.Options, listing: true, signals: true},
	{name: "srun", run: srun.Casting(sbcast.Run), signals: true},
	{name: "sshare", run: sshare.Run, options: sshare.Options, listing: true, signals: true},
	{name: "sstat", run: sstat.Run, options: sstat.Options, listing: true, signals: true},
	{name: "strigger", run: strigger.Run, options: strigger.Options, listing: true, signals: true},
}

func find(name string) (*command, bool) {
	for i := range commands {
		if commands[i].name == name {
			return &commands[i], true
		}
	}
	return nil, false
}

// Lookup finds the command of a name.
func Lookup(name string) (cmd.Func, bool) {
	c, ok := find(name)
	if !ok {
		return nil, false
	}
	return c.run, true
}

// Names are all names that Lookup knows, for links.
func Names() (list []string) {
	for i := range commands {
		list = append(list, commands[i].name)
	}
	return list
}

// Manuals are the pages of all commands.
func Manuals() []*manual.Page {
	pages := []*manual.Page{slurm.Manual(slurm.Sbatch), slurm.Manual(slurm.Salloc), slurm.Manual(slurm.Srun)}
	for i := range commands {
		if c := &commands[i]; c.options != nil {
			pages = append(pages, manual.Of(c.name, c.options()))
		}
	}
	return pages
}

// Pages are the manual pages by the names of the commands, for man(1).
func Pages() map[string]string {
	out := map[string]string{}
	for _, p := range Manuals() {
		out[p.Name] = p.Roff()
	}
	return out
}

// Main runs the command called name in the world of this process and returns its exit code. ok is false when there is
// no such command.
func Main(name string, args []string) (code int, ok bool) {
	c, ok := find(name)
	if !ok {
		return 0, false
	}
	ctx := context.Background()
	if !c.signals {
		var stop context.CancelFunc
		ctx, stop = signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
		defer stop()
	}
	w := cmd.Real(name)
	report.SetTimeFormat(w.Getenv("SLURM_TIME_FORMAT"))
	if c.listing {
		w.Out, w.Err = &plain.Writer{W: w.Out}, &plain.Writer{W: w.Err}
	}
	if code = c.run(ctx, w, args); code != 0 && ctx.Err() != nil {
		code = exitInterrupted
	}
	return code, true
}

// exitInterrupted is what a shell says of a command that Ctrl-C ended, as it ends Slurm's.
const exitInterrupted = 130
