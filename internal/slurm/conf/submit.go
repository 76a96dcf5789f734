package conf

import (
	"path/filepath"
	"slices"
	"strings"

	"bireme.dev/bireme/internal/config"
)

// submitPlugins reads JobSubmitPlugins. The script of lua lies beside slurm.conf, as in Slurm.
func submitPlugins(v *converter, s Setting) error {
	v.cfg.Jobs.SubmitPlugins = nil
	for word := range strings.SplitSeq(s.Value, ",") {
		name := strings.TrimPrefix(strings.TrimSpace(word), "job_submit/")
		switch {
		case name == "", name == "none":
		case slices.Contains(config.SubmitPluginNames, name):
			v.cfg.Jobs.SubmitPlugins = append(v.cfg.Jobs.SubmitPlugins, name)
		default:
			v.note(s.Where, s.Key, word, "this plug-in is not there; lua, require_timelimit and all_partitions are")
		}
	}
	v.cfg.Jobs.SubmitScript = filepath.Join(filepath.Dir(v.conf.File), "job_submit.lua")
	return nil
}

// defaultCompleted is Slurm's JobCompLoc of jobcomp/filetxt.
const defaultCompleted = "/var/log/slurm_jobcomp.log"

// completions reads JobCompType with JobCompLoc, wherever each stands.
func completions(v *converter, s Setting) error {
	kind, _ := v.conf.Get("JobCompType")
	switch name := strings.TrimPrefix(strings.ToLower(kind), "jobcomp/"); name {
	case "filetxt":
		v.cfg.Accounting.CompletedFile = defaultCompleted
		if file, ok := v.conf.Get("JobCompLoc"); ok {
			v.cfg.Accounting.CompletedFile = file
		}
	case "", "none":
	default:
		if strings.EqualFold(s.Key, "JobCompType") {
			v.note(s.Where, s.Key, s.Value, "finished jobs are in the store; jobcomp/filetxt writes them to a file")
		}
	}
	return nil
}
