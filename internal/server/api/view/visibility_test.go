package view

import (
	"slices"
	"strings"
	"testing"

	"bireme.dev/bireme/internal/config"
	"bireme.dev/bireme/internal/core"
)

// Who sees what, for each word of PrivateData and each role: the victim's things, in a project that the manager
// manages.
func TestVisibility(t *testing.T) {
	t.Parallel()
	const all = "admin manager member owner stranger"
	job := &core.Job{ID: 1, Spec: &core.Spec{User: "owner", Project: "physics"}}
	run := &core.Run{User: "owner", Project: "physics"}
	onNode, ofJob := &core.Event{Node: "n1"}, &core.Event{Job: 1, Node: "n1", User: "owner"}
	nouns := map[string]struct {
		sees    func(v *Visibility) bool
		public  string                    // who sees it where nothing is private
		private map[config.Private]string // who sees it when this is
	}{
		"job": {
			func(v *Visibility) bool { return v.SeesJob(job) }, all,
			map[config.Private]string{config.PrivateJobs: "admin manager owner"},
		},
		"run": {
			func(v *Visibility) bool { return v.SeesRun(run) }, all,
			map[config.Private]string{config.PrivateJobs: "admin manager owner"},
		},
		"usage": {
			func(v *Visibility) bool { return v.SeesUsage("owner", "physics") }, all,
			map[config.Private]string{config.PrivateUsage: "admin manager owner"},
		},
		"user": {
			func(v *Visibility) bool { return v.SeesUser("owner") }, all,
			map[config.Private]string{config.PrivateUsers: "admin owner"},
		},
		"member of a project": {
			func(v *Visibility) bool { return v.seesMember("physics", "owner") }, all,
			map[config.Private]string{config.PrivateUsers: "admin manager owner"},
		},
		"project": {
			func(v *Visibility) bool { return v.SeesProject("physics") }, all,
			map[config.Private]string{config.PrivateAccounts: "admin manager"},
		},
		"nodes": {
			func(v *Visibility) bool { return v.SeesNodes() }, all,
			map[config.Private]string{config.PrivateNodes: "admin"},
		},
		"partitions": {
			func(v *Visibility) bool { return v.SeesPartitions() }, all,
			map[config.Private]string{config.PrivatePartitions: "admin"},
		},
		"reservation that cannot be used": {
			func(v *Visibility) bool { return v.seesReservation(func() bool { return false }) }, all,
			map[config.Private]string{config.PrivateReservations: "admin"},
		},
		"reservation that can be used": {
			func(v *Visibility) bool { return v.seesReservation(func() bool { return true }) },
			all, nil,
		},
		"event of a node": {
			func(v *Visibility) bool { return v.SeesEvent(onNode) }, all,
			map[config.Private]string{config.PrivateEvents: "admin", config.PrivateNodes: "admin"},
		},
		"event of a job":           {func(v *Visibility) bool { return v.SeesEvent(ofJob) }, "admin owner", nil},
		"script and environment":   {func(v *Visibility) bool { return v.OwnsSecrets("owner") }, "admin owner", nil},
		"things of nobody by name": {func(v *Visibility) bool { return v.isSelf("") }, "", nil},
		"jobs of nobody in nothing": {
			func(v *Visibility) bool { return v.seesWork("", "") }, all,
			map[config.Private]string{config.PrivateJobs: "admin"},
		},
	}
	roles := map[string]core.Role{"manager": core.RoleManager, "member": core.RoleUser, "owner": core.RoleUser}
	var every config.Private
	for bit := config.Private(1); bit <= config.PrivateUsers; bit <<= 1 {
		every |= bit
	}
	for name, n := range nouns {
		for bit := config.Private(0); bit <= every; bit++ { // all sets, the empty one too
			want := strings.Fields(n.public)
			for kind, who := range n.private {
				if bit.Has(kind) {
					want = slices.DeleteFunc(want, func(w string) bool { return !slices.Contains(strings.Fields(who), w) })
				}
			}
			for _, who := range strings.Fields(all) {
				v := &Visibility{User: core.UserName(who), Admin: who == "admin", Private: bit}
				v.Role = func(p core.ProjectName) core.Role {
					if p == "physics" {
						return roles[who]
					}
					return core.RoleNone
				}
				if who == "stranger" {
					v.User, v.Role = "", nil
				}
				if got := n.sees(v); got != slices.Contains(want, who) {
					t.Fatalf("%s, private: %s: %s sees it: %v", name, bit, who, got)
				}
			}
		}
	}
}
