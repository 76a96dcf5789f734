package config

import (
	"fmt"
	"slices"
	"strings"
)

// SubmitPluginNames are the plug-ins of jobs.submit_plugins.
var SubmitPluginNames = []string{"lua", "require_timelimit", "all_partitions"}

// defaultSubmitScript is the script of the plug-in lua where none is named.
const defaultSubmitScript = "/etc/bireme/job_submit.lua"

// Script is the file of the plug-in lua.
func (j *Jobs) Script() string {
	if j.SubmitScript == "" {
		return defaultSubmitScript
	}
	return j.SubmitScript
}

func (d *decoder) checkSubmit(c *Config) {
	for i, name := range c.Jobs.SubmitPlugins {
		if !slices.Contains(SubmitPluginNames, name) {
			d.at(fmt.Sprintf("jobs.submit_plugins[%d]", i), "%q is no plug-in; expected some of %s", name,
				strings.Join(SubmitPluginNames, ", "))
		}
	}
}
