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
