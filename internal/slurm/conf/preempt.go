package conf

import (
	"fmt"
	"strings"

	"bireme.dev/bireme/internal/config"
	"bireme.dev/bireme/internal/core"
)

func init() {
	known["preempttype"] = preemptType
	known["preemptmode"] = func(v *converter, s Setting) error {
		mode, err := preemptMode(s.Value)
		v.cfg.Preemption.Mode = mode
		return err
	}
	known["preemptexempttime"] = func(v *converter, s Setting) error {
		if s.Value == "-1" {
			return nil
		}
		return toTime(func(c *config.Config) *config.Duration { return &c.Preemption.ExemptTime })(v, s)
	}
	known["preemptparameters"] = preemptParameters
}

func preemptType(v *converter, s Setting) error {
	switch kind := strings.TrimPrefix(strings.ToLower(s.Value), "preempt/"); kind {
	case "none", "qos", "partition_prio":
		v.cfg.Preemption.Type = kind
		return nil
	}
	return fmt.Errorf("expected preempt/none, preempt/qos or preempt/partition_prio")
}

// preemptMode reads words such as SUSPEND,GANG.
func preemptMode(text string) (string, error) {
	mode := strings.ToLower(text)
	if mode == "gang" { // time slices alone push nobody aside
		mode = "off"
	}
	if !core.PreemptMode(mode).Valid() {
		return "", fmt.Errorf("expected OFF, CANCEL, REQUEUE or SUSPEND, with GANG, PRIORITY or WITHIN")
	}
	return mode, nil
}

func preemptParameters(v *converter, s Setting) error {
	for word := range strings.SplitSeq(s.Value, ",") {
		if strings.EqualFold(word, "youngest_first") {
			v.cfg.Preemption.Order = "youngest"
			continue
		}
		v.note(s.Where, s.Key, word, notYet)
	}
	return nil
}
