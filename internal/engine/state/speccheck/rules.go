package speccheck

import "bireme.dev/bireme/internal/core"

var rulesTable = fieldTable[core.RunRules]{
	texts: []textField[core.RunRules]{
		{"extra.run_rules.startup_order", maxWord, func(r *core.RunRules) string { return string(r.StartupOrder) }},
		{"extra.run_rules.stop_criteria", maxWord, func(r *core.RunRules) string { return string(r.StopCriteria) }},
	},
	numbers: []numberField[core.RunRules]{
		{"extra.run_rules.start_within", 0, MaxSeconds, 0, func(r *core.RunRules) int64 { return int64(r.StartWithin) }},
		{"extra.run_rules.inactivity", 0, MaxSeconds, 0, func(r *core.RunRules) int64 { return int64(r.Inactivity) }},
	},
	lists: []listField[core.RunRules]{
		{"extra.run_rules.schedule", func(r *core.RunRules) (int, error) {
			return checkTextList("extra.run_rules.schedule", r.Schedule, 32, maxWord)
		}},
	},
}

var retryTable = fieldTable[core.Retry]{
	numbers: []numberField[core.Retry]{
		{"extra.run_rules.retry.duration", 0, MaxSeconds, 0, func(r *core.Retry) int64 { return int64(r.Duration) }},
	},
	flags: []string{
		"extra.run_rules.retry.no_capacity", "extra.run_rules.retry.interruption", "extra.run_rules.retry.error",
	},
}

var utilizationTable = fieldTable[core.MinUtilization]{
	numbers: []numberField[core.MinUtilization]{
		{"extra.run_rules.utilization.percent", 0, 100, 0, func(u *core.MinUtilization) int64 { return int64(u.Percent) }},
		{
			"extra.run_rules.utilization.window", 1, MaxSeconds, 0,
			func(u *core.MinUtilization) int64 { return int64(u.Window) },
		},
	},
}

// checkRules refuses words that are none of a run's rules.
func checkRules(r *core.RunRules) error {
	switch r.StartupOrder {
	case core.StartAny, core.StartMasterFirst, core.StartWorkersFirst:
	default:
		return Invalid("extra.run_rules.startup_order", "%.80q is not an order", r.StartupOrder)
	}
	switch r.StopCriteria {
	case core.StopAllDone, core.StopMasterDone:
	default:
		return Invalid("extra.run_rules.stop_criteria", "%.80q is not a criterion", r.StopCriteria)
	}
	return nil
}

// checkRulesRanges refuses numbers that mean nothing.
func checkRulesRanges(r *core.RunRules) error {
	if err := rulesTable.checkNumbers(r); err != nil {
		return err
	}
	if r.Retry != nil {
		if err := retryTable.checkNumbers(r.Retry); err != nil {
			return err
		}
	}
	if r.Utilization != nil {
		return utilizationTable.checkNumbers(r.Utilization)
	}
	return nil
}
