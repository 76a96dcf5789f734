package server

import (
	"context"
	"fmt"
	"os"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/config"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine"
	"bireme.dev/bireme/internal/engine/state"
	"bireme.dev/bireme/internal/server/jobsubmit"
)

// reload reads the settings again, checks them whole and makes those hold that need no restart: all of them, or, where
// anything is wrong, none.
func (s *server) reload(ctx context.Context, by core.Identity, dry bool) (*client.Reconfigured, error) {
	if !by.Admin {
		return nil, core.Errorf(core.Denied, "only an administrator has the settings read again").Because("access_denied")
	}
	s.reloading.Lock()
	defer s.reloading.Unlock()
	old := s.live.Load()
	file := old
	if s.Reload != nil {
		var err error
		if file, err = s.Reload(); err != nil {
			return nil, err
		}
	}
	next := old.Reloaded(file)
	notes, err := s.judge(next)
	if err != nil {
		return nil, err
	}
	if err := jobsubmit.Check(submitSettings(next)); err != nil {
		return nil, err
	}
	out := &client.Reconfigured{Settings: []core.FieldChange{}}
	for _, path := range old.Differences(file) {
		c := core.FieldChange{Name: path, Was: old.Text(path), Is: file.Text(path)}
		switch {
		case config.NeedsRestart(path):
			out.Restart = append(out.Restart, c)
		case path != "partitions" && path != "nodes" && path != "licenses": // these are told one by one
			out.Settings = append(out.Settings, c)
		}
	}
	reply, err := engine.Do(ctx, s.engine, &state.Reconfigure{
		By: by, Config: engineConfig(next).State, Nodes: next.CoreNodes(), GoneNodes: goneNodes(old, next), Dry: dry,
	})
	if err != nil {
		return nil, err
	}
	out.Notes = notes
	out.Changes = reply.Changes
	if out.Applied = !dry; out.Applied {
		s.live.Store(next)
		s.bound(next)
		s.api.SetConfig(next)
		if s.ssh != nil {
			s.ssh.Recheck() // other people may be administrators now
		}
		s.hub.SetRules(hubRules(next))
		s.triggers.Reconfigured()
		if err := s.plugins.Use(submitSettings(next), true); err != nil { // it was changed since it was checked
			s.Log.Error("the script of jobs.submit_plugins cannot be loaded; the previous one holds", "err", err)
		}
	}
	return out, nil
}

// judge holds settings against what is there.
func (s *server) judge(cfg *config.Config) (notes []string, err error) {
	snap := s.engine.Snapshot()
	faults, notes := cfg.Judge(config.Known{
		QOS:  func(name core.QOSName) bool { _, ok := snap.QOS(name); return ok },
		Node: func(name core.NodeName) bool { _, ok := snap.Node(name); return ok },
	})
	if len(faults) == 0 {
		return notes, nil
	}
	e := core.Errorf(core.Conflict, "the settings conflict with the present state: %s (a server that runs adds it: "+
		"sacctmgr add qos)", faults[0].Message)
	if n := len(faults) - 1; n > 0 {
		e.Message += fmt.Sprintf("; and %d more", n)
	}
	e.Faults = faults
	return notes, e.Because("invalid_configuration")
}

// goneNodes lists the nodes that one configuration has and another has not.
func goneNodes(old, next *config.Config) []core.NodeName {
	has := map[core.NodeName]bool{}
	for _, n := range next.CoreNodes() {
		has[n.Name] = true
	}
	var out []core.NodeName
	for _, n := range old.CoreNodes() {
		if !has[n.Name] {
			out = append(out, n.Name)
		}
	}
	return out
}

// reloadOn reads the settings again at every signal.
func (s *server) reloadOn(ctx context.Context, signals <-chan os.Signal) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-signals:
		}
		out, err := s.reload(ctx, core.Identity{User: "root", Admin: true}, false)
		s.auditReload(err)
		if err != nil {
			s.Log.Error("the settings were not taken over; nothing has changed", "err", err, "faults", core.FaultsOf(err))
			continue
		}
		s.Log.Info("the settings were read again", "changes", len(out.Changes)+len(out.Settings), "waiting", len(out.Restart))
	}
}
