package speccheck

import "bireme.dev/bireme/internal/core"

// Submission refuses a submission, also one that is only tried, for what it says by itself, whatever the cluster is.
// components are those of a het job after the first.
func Submission(key string, spec *core.Spec, components []*core.Spec) error {
	if len(key) > MaxKeyText {
		return TooLong("key", len(key), MaxKeyText)
	}
	if err := Submitted(spec); err != nil {
		return err
	}
	if n := len(components) + 1; n > MaxComponents {
		return core.Errorf(core.Invalid, "%d components are too many; the maximum is %d", n, MaxComponents).
			Because("invalid_het")
	}
	for i, c := range components {
		if err := Submitted(c); err != nil {
			return InComponent(err, i+1)
		}
	}
	return nil
}

// InComponent says of which component a fault is.
func InComponent(err error, i int) error {
	return core.Errorf(core.CodeOf(err), "component %d: %v", i, err).Because(core.ReasonOf(err))
}

// IsUnfit reports whether a refusal says that no node could ever serve the request.
func IsUnfit(err error) bool {
	switch core.ReasonOf(err) {
	case "node_config_unavailable", "memory_unsatisfiable", "invalid_gres", "invalid_feature", "invalid_node",
		"too_many_nodes", "no_default_partition":
		return true
	}
	return false
}
