package jobsubmit

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state"
	"bireme.dev/bireme/internal/slurm"
)

// The plug-ins.
const (
	Lua              = "lua"
	RequireTimeLimit = "require_timelimit" // a job without a time limit is refused
	AllPartitions    = "all_partitions"    // a job without a partition is in all of them
)

// Names are the plug-ins that there are.
var Names = []string{Lua, RequireTimeLimit, AllPartitions}

// Settings say which plug-ins run, in order.
type Settings struct {
	Plugins []string
	Script  string // file of the Lua script
	Cluster string
}

// Plugins runs the plug-ins of a site. The zero value runs none.
type Plugins struct {
	Log *slog.Logger

	mu     sync.Mutex // of what follows
	set    Settings
	script *script // nil: Lua is not among them
}

// Use makes other settings hold, or the same ones with the script as it now is. A script that cannot be loaded is
// an error; with keep nothing changes then, without it every submission is refused until there is one.
func (p *Plugins) Use(set Settings, keep bool) error {
	var next *script
	var bad error
	for _, name := range set.Plugins {
		if name == Lua {
			next, bad = loadScript(set, p.Log)
		}
	}
	if bad != nil { // without a reason, so that everybody shows the message
		bad = core.Errorf(core.Invalid, "JobSubmitPlugins=lua: %v", bad).Because("")
	}
	if bad != nil && keep {
		return bad
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.set, p.script = set, next
	return bad
}

// Check loads the script of settings and drops it.
func Check(set Settings) error {
	return (&Plugins{Log: slog.New(slog.DiscardHandler)}).Use(set, true)
}

// Active reports whether there is any plug-in.
func (p *Plugins) Active() bool {
	if p == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.set.Plugins) > 0
}

func (p *Plugins) now() (Settings, *script) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.script == nil && slices.Contains(p.set.Plugins, Lua):
		p.script, _ = loadScript(p.set, p.Log) // it could not be loaded so far, which was told
	case p.script != nil && p.script.changed(): // as Slurm: a script that was edited holds from the next job on
		next, err := loadScript(p.set, p.Log)
		if err != nil {
			p.Log.Error("job_submit.lua: the script was changed and cannot be loaded; the previous one holds", "err", err)
			p.script.seen()
		} else {
			p.script = next
		}
	}
	return p.set, p.script
}

// Submission is a job as it comes in. Plug-ins change Spec, Script and Env.
type Submission struct {
	Spec    *core.Spec
	Script  []byte
	Env     []byte // KEY=VALUE, each ended by NUL
	User    string // unix name of whose job it is
	Account string // the user's default project
	By      uint32 // uid of who submits
	Now     *state.Snapshot
}

// Submit asks the plug-ins in turn; the first that refuses ends it. Told are the lines that they have for the
// submitter; of a refusal they are in the error.
func (p *Plugins) Submit(ctx context.Context, s *Submission) (told []string, err error) {
	set, lua := p.now()
	for _, name := range set.Plugins {
		switch name {
		case RequireTimeLimit:
			if s.Spec.TimeLimit == 0 {
				return told, refusal(slurm.ReasonMissingTimeLimit, nil)
			}
		case AllPartitions:
			if s.Spec.Partition.IsZero() {
				var all []core.PartitionName
				for _, part := range s.Now.Partitions() {
					all = append(all, part.Name)
				}
				s.Spec.Partition = core.ListPartitions(all...)
			}
		case Lua:
			lines, err := lua.submit(ctx, s)
			if told = append(told, lines...); err != nil {
				return told, err
			}
		default:
			return told, refusal(slurm.ReasonUnspecified, []string{"there is no job_submit plug-in " + name})
		}
	}
	return told, nil
}

// refusal is the error of a job that a plug-in refused.
func refusal(reason string, told []string) *core.Error {
	e := core.Errorf(core.Invalid, "the site's job_submit plug-in refused it").Because(reason)
	if len(told) > 0 { // for those who show nothing but the message
		e.Message += ": " + strings.Join(told, "; ")
	}
	for _, line := range told {
		e.Faults = append(e.Faults, core.Fault{Path: toldPath, Message: line})
	}
	return e
}

const toldPath = slurm.ToldPath

// broken is the error of a plug-in that cannot say what it thinks of a job.
func broken(format string, args ...any) *core.Error {
	return core.Errorf(core.Invalid, "%s", fmt.Sprintf(format, args...)).Because(slurm.ReasonSubmitPlugin)
}
