package config

import (
	"fmt"
	"slices"
)

// LimitNames are the resource limits that jobs may get from the shell that submits them.
var LimitNames = []string{"AS", "CORE", "CPU", "DATA", "FSIZE", "MEMLOCK", "NOFILE", "NPROC", "RSS", "STACK"}

func (d *decoder) checkKeptLimits(c *Config) {
	for i, name := range c.Step.KeepLimits {
		if name != "ALL" && !slices.Contains(LimitNames, name) {
			d.at(fmt.Sprintf("step.keep_limits[%d]", i), "%q is no limit; expected ALL or some of %v", name, LimitNames)
		}
	}
}
