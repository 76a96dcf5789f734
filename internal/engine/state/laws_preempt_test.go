package state

import (
	"time"

	"bireme.dev/bireme/internal/core"
)

// pushers are the QOS of a world in which jobs may push others aside.
var pushers = []core.QOS{
	{Name: "low", Priority: 1, Grace: 60},
	{Name: "mid", Priority: 5, Preempt: []core.QOSName{"low"}, PreemptMode: core.PreemptSuspend, PreemptExempt: 600},
	{Name: "high", Priority: 9, Preempt: []core.QOSName{"low", "mid"}},
}

// mayPush lets jobs push others aside, in some worlds.
func mayPush(cfg *Config, choose func(int) int) {
	kinds := []core.PreemptType{core.PreemptNobody, core.PreemptByQOS, core.PreemptByQOS, core.PreemptByTier}
	modes := []core.PreemptMode{
		core.PreemptRequeue, core.PreemptSuspend, core.PreemptCancel, "requeue,within",
		"suspend,priority",
	}
	cfg.Preemption = core.Preemption{
		Type: kinds[choose(len(kinds))], Mode: modes[choose(len(modes))],
		Grace: core.Seconds(choose(2) * 30),
	}
}

func (c *chaos) checkpoint() {
	at := c.now.Add(-time.Duration(c.choose(3)) * time.Minute)
	_, _ = c.do(&UpdateJob{By: c.who(), Job: c.live(), Checkpoint: &at})
}
