package slurm

import (
	"maps"

	"bireme.dev/bireme/internal/core"
)

// publicOptions are the kept options of a job that everybody sees, as Slurm shows them. Others stay with the owner and
// the administrators: a crontab's lines are among them, and what a client chose to keep there.
var publicOptions = map[string]bool{
	"acctg-freq": true, "admin-comment": true, "cpu-freq": true, "delay-boot": true, "extra": true, "gpu-bind": true,
	"gpu-freq":   true,
	"gres-flags": true, "mcs-label": true, "network": true, "ntasks": true, "ntasks-per-node": true,
	"oom-kill-step": true, "power": true, "profile": true, "reboot": true, "resv-ports": true, "wait-all-nodes": true,
}

// PublicOptions copies the options of a job without those that only its owner sees.
func PublicOptions(k *core.KeptOptions) *core.KeptOptions {
	if k == nil {
		return nil
	}
	out := &core.KeptOptions{NoKill: k.NoKill, KillInvalid: k.KillInvalid, Slurm: maps.Clone(k.Slurm)}
	maps.DeleteFunc(out.Slurm, func(name, _ string) bool { return !publicOptions[name] })
	if out.NoKill == nil && out.KillInvalid == nil && len(out.Slurm) == 0 {
		return nil
	}
	return out
}

// keepOption keeps an option with the job, for this front end.
func (r *Request) keepOption(name, value string) {
	k := r.extra.Keep()
	if k.Slurm == nil {
		k.Slurm = map[string]string{}
	}
	k.Slurm[name] = value
}
