package agent

import (
	"context"
	"errors"
	"time"

	"bireme.dev/bireme/internal/agent/gpu"
	"bireme.dev/bireme/internal/agent/hardware"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/wire"
)

// idleLooks is how much rarer the GPUs of a node without jobs are looked at: their makers' tools are not cheap.
const idleLooks = 6

// sampler looks at the node's GPUs and at what its jobs use, and tells the server.
type sampler struct {
	a      *Agent
	watch  *gpu.Watch
	kernel gpu.Kernel
	found  map[string][]gpu.Fault // by DCGM, at the last idle look
	idle   time.Duration          // between two looks on a node without jobs
	looked time.Duration          // boottime of the last look at the GPUs; 0: never
	asked  time.Duration          // and of the last question to DCGM

	foreign bool // another user listens where dcgm-exporter should
}

// sample runs until ctx ends. Jobs that end between two looks leave no sample.
func (a *Agent) sample(ctx context.Context) error {
	s := &sampler{a: a, watch: gpu.NewWatch(a.machine.GPUs)}
	defer s.kernel.Close()
	for {
		a.mu.Lock()
		every := a.settings.Sample
		a.mu.Unlock()
		wait := make(<-chan time.Time)
		if every > 0 {
			wait = time.After(every)
		}
		fresh := false
		select {
		case <-ctx.Done():
			return nil
		case <-a.settled: // a server that knows nothing yet, or settings that changed
			fresh = true
		case <-wait:
		}
		s.idle = idleLooks * every
		s.tell(ctx, fresh)
	}
}

// tell takes a sample and sends it, if there is something in it.
func (s *sampler) tell(ctx context.Context, fresh bool) {
	keys := s.a.ledger.jobKeys()
	var out wire.Sample
	var exported []byte
	if len(s.a.machine.GPUs) > 0 && (fresh || len(keys) > 0 || s.looked == 0 || hardware.BootTime()-s.looked >= s.idle) {
		out.Units, exported = s.look(ctx)
	}
	for _, k := range keys {
		if use, ok := s.use(ctx, k); ok {
			out.Jobs = append(out.Jobs, use)
		}
	}
	if out.Units != nil || out.Jobs != nil {
		s.a.ledger.tell(wire.TypeSample, out, exported)
	}
}

// look reads all GPUs and judges them.
func (s *sampler) look(ctx context.Context) (units []core.UnitState, exported []byte) {
	gpus := s.a.machine.GPUs
	var seen []gpu.Seen
	var errs []error
	if s.a.machine.Vendors == nil { // they are fake, and well
		for _, d := range gpus {
			seen = append(seen, gpu.Seen{Device: d})
		}
	} else {
		seen, errs = gpu.Look(ctx, s.a.machine.Vendors)
		s.kernel.Read()
		if s.asked == 0 || hardware.BootTime()-s.asked >= s.idle {
			s.asked = hardware.BootTime()
			s.found, _ = gpu.Machine{}.DCGM(ctx, gpus) // without its daemon the other sources have to do
		}
		exported = s.export(ctx)
	}
	if ctx.Err() != nil { // what failed now failed because of that
		return nil, nil
	}
	s.looked = hardware.BootTime()
	s.watch.Loaded(s.kernel.Loads())
	health := s.watch.Judge(seen, errs, s.kernel.Faults(), s.found)
	for i := range gpus {
		u := core.UnitState{
			Name: "gpu", Index: int32(i), UUID: gpus[i].UUID, Memory: gpus[i].Memory, Health: health[i].Level.String(),
			Faults: health[i].String(),
		}
		for k := range seen {
			if seen[k].UUID == gpus[i].UUID {
				u.Util, u.Used, u.Temp, u.Power = seen[k].Util, seen[k].Used, seen[k].Temp, seen[k].Power
			}
		}
		units = append(units, u)
	}
	return units, exported
}

// export asks the node's dcgm-exporter. Most nodes have none, so its absence is nothing to tell.
func (s *sampler) export(ctx context.Context) []byte {
	s.a.mu.Lock()
	url := s.a.settings.DCGMExporter
	s.a.mu.Unlock()
	if url == "" || s.a.machine.GPUs[0].Vendor != "nvidia" {
		return nil
	}
	text, err := gpu.Exported(ctx, url, s.a.machine.GPUs)
	if foreign := errors.Is(err, gpu.ErrListener); foreign != s.foreign {
		if s.foreign = foreign; foreign {
			s.a.log.Warn("dcgm-exporter", "err", err)
		}
	}
	if err != nil {
		s.a.log.Debug("dcgm-exporter", "err", err)
	}
	return text
}

// use asks the keeper what a job uses.
func (s *sampler) use(ctx context.Context, k wire.Key) (wire.JobUse, bool) {
	f, err := s.a.ledger.call(ctx.Done(), wire.TypeStat, func(ref uint64) any {
		return wire.Stat{Ref: ref, Job: k.Job, Attempt: k.Attempt}
	})
	if err != nil {
		return wire.JobUse{}, false
	}
	var u wire.Usage
	if err := f.Decode(&u); err != nil || !u.Found {
		return wire.JobUse{}, false
	}
	cpu, mem := s.a.containers.use(k)
	return wire.JobUse{Job: k.Job, Attempt: k.Attempt, CPU: u.Used.UserCPU + u.Used.SysCPU + cpu, Mem: u.RSS + mem}, true
}

// jobKeys names the jobs that run, each once.
func (l *ledger) jobKeys() []wire.Key {
	l.mu.Lock()
	defer l.mu.Unlock()
	seen := map[name]bool{}
	var out []wire.Key
	for n, r := range l.running {
		if n.step = ""; !seen[n] {
			seen[n] = true
			out = append(out, r.key)
		}
	}
	return out
}
