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
	"bireme.dev/bireme/internal/slurm/cmd/sinfo"
	"bireme.dev/bireme/internal/slurm/cmd/squeue"
	"bireme.dev/bireme/internal/slurm/cmd/srun"
	"bireme.dev/bireme/internal/slurm/getopt"
	"bireme.dev/bireme/internal/slurm/manual"
)

// Lookup finds the command of a name.
func Lookup(name string) (cmd.Func, bool) {
	switch name {
	case "sbatch":
		return sbatch.Run, true
	case "squeue":
		return squeue.Run, true
	case "sacct":
		return sacct.Run, true
	case "scancel":
		return scancel.Run, true
	case "sinfo":
		return sinfo.Run, true
	case "srun":
		return srun.Casting(sbcast.Run), true
	case "scontrol":
		return scontrol.Run, true
	case "scrontab":
		return scrontab.Run, true
	case "salloc":
		return salloc.Run, true
	case "sacctmgr":
		return sacctmgr.Run, true
	case "sattach":
		return sattach.Run, true
	case "sbcast":
		return sbcast.Run, true
	}
	return nil, false
}

// Names are all names that Lookup knows, for links.
func Names() []string {
	return []string{
		"sacct", "sacctmgr", "salloc", "sattach", "sbatch", "sbcast", "scancel", "scontrol", "scrontab",
		"sinfo", "squeue", "srun",
	}
}

// Manuals are the pages of all commands.
func Manuals() []*manual.Page {
	pages := []*manual.Page{slurm.Manual(slurm.Sbatch), slurm.Manual(slurm.Salloc), slurm.Manual(slurm.Srun)}
	for _, c := range []struct {
		name    string
		options *getopt.Parser
	}{
		{"sacct", sacct.Options()},
		{"sacctmgr", sacctmgr.Options()},
		{"sattach", sattach.Options()},
		{"sbcast", sbcast.Options()},
		{"scancel", scancel.Options()},
		{"scontrol", scontrol.Options()},
		{"scrontab", scrontab.Options()},
		{"sinfo", sinfo.Options()},
		{"squeue", squeue.Options()},
	} {
		pages = append(pages, manual.Of(c.name, c.options))
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
	run, ok := Lookup(name)
	if !ok {
		return 0, false
	}
	ctx := context.Background()
	switch name {
	case "srun", "salloc": // they have their own ways with signals
	case "sbatch", "squeue", "sinfo", "sacct", "scancel", "scontrol":
		// they leave nothing behind: a signal ends them, as it ends Slurm's
	default:
		var stop context.CancelFunc
		ctx, stop = signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
		defer stop()
	}
	w := cmd.Real(name)
	switch name {
	case "sacct", "sacctmgr", "scancel", "scontrol", "sinfo", "squeue":
		// what they print is other people's words, and nobody's program writes there
		w.Out, w.Err = &plain.Writer{W: w.Out}, &plain.Writer{W: w.Err}
	}
	if code = run(ctx, w, args); code != 0 && ctx.Err() != nil {
		code = exitInterrupted
	}
	return code, true
}

// exitInterrupted is what a shell says of a command that Ctrl-C ended, as it ends Slurm's.
const exitInterrupted = 130
