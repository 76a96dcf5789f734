package conf

import (
	"fmt"
	"slices"
	"strings"

	"bireme.dev/bireme/internal/config"
)

// limitNames reads a list of resource limits, with or without RLIMIT_ before each.
func limitNames(text string) ([]string, error) {
	var out []string
	for w := range strings.SplitSeq(strings.ToUpper(text), ",") {
		w = strings.TrimPrefix(strings.TrimSpace(w), "RLIMIT_")
		if w != "ALL" && w != "NONE" && !slices.Contains(config.LimitNames, w) {
			return nil, fmt.Errorf("expected ALL, NONE or names such as CORE,NOFILE; %q is none", w)
		}
		out = append(out, w)
	}
	return out, nil
}

// propagateLimits reads which limits of the submitting shell jobs get; the setting here names the others.
func propagateLimits(v *converter, s Setting) error {
	list, err := limitNames(s.Value)
	if err != nil || slices.Contains(list, "ALL") {
		return err
	}
	if slices.Contains(list, "NONE") {
		v.cfg.Step.KeepLimits = []string{"ALL"}
		return nil
	}
	for _, name := range config.LimitNames {
		if !slices.Contains(list, name) {
			v.cfg.Step.KeepLimits = append(v.cfg.Step.KeepLimits, name)
		}
	}
	return nil
}

// propagateExcept reads which limits of the submitting shell jobs do not get.
func propagateExcept(v *converter, s Setting) error {
	list, err := limitNames(s.Value)
	v.cfg.Step.KeepLimits = append(v.cfg.Step.KeepLimits, list...)
	return err
}
