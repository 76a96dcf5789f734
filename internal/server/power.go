package server

import (
	"bireme.dev/bireme/internal/config"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state"
	"bireme.dev/bireme/internal/server/power"
)

// powerRules is what the engine goes by when nodes sleep, wake and restart.
func powerRules(cfg *config.Config) state.Power {
	p := &cfg.Power
	r := state.Power{
		SuspendTime: seconds(p.SuspendTime), Except: p.ExcludeNodes, Wakes: p.ResumeProgram != "",
		RebootTimeout: seconds(cfg.Reboot.Timeout), Return: cfg.Health.Return,
	}
	for _, name := range p.ExcludePartitions {
		r.ExceptParts = append(r.ExceptParts, core.PartitionName(name))
	}
	if p.SuspendProgram != "" { // without, a node only is not used, which takes no time
		r.SuspendTimeout = seconds(p.SuspendTimeout)
	}
	if p.ResumeProgram != "" { // without, somebody else wakes it, who takes the time it takes
		r.ResumeTimeout = seconds(p.ResumeTimeout)
	}
	return r
}

func (s *server) powerPrograms() power.Programs {
	cfg := s.live.Load()
	return power.Programs{
		Suspend: cfg.Power.SuspendProgram, Resume: cfg.Power.ResumeProgram, Fail: cfg.Power.ResumeFailProgram,
		Env: []string{"BIREME_SERVER=unix:" + cfg.Socket()},
	}
}
