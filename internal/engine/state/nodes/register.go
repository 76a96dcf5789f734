package nodes

import (
	"slices"
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state/people"
)

// SameRegistration reports whether a registration says nothing new.
func SameRegistration(a, b *core.Node) bool {
	return a.Flags == b.Flags && a.Pin == b.Pin && a.Host == b.Host && a.Roles == b.Roles && a.TrustRoot == b.TrustRoot &&
		a.Fleet == b.Fleet && a.Project == b.Project && a.Blocks == b.Blocks && a.Reason == b.Reason &&
		a.Hardware.CPUs == b.Hardware.CPUs && a.Hardware.Memory == b.Hardware.Memory &&
		a.Hardware.Sockets == b.Hardware.Sockets &&
		a.Hardware.Cores == b.Hardware.Cores && a.Hardware.Threads == b.Hardware.Threads &&
		a.Hardware.TmpDisk == b.Hardware.TmpDisk &&
		slices.Equal(a.Hardware.Units, b.Hardware.Units) &&
		slices.Equal(a.Hardware.Gres, b.Hardware.Gres) && slices.Equal(a.Features, b.Features)
}

// Put makes a node known before its agent is heard, as one of the config file, and returns its record.
func (ed *Editor) Put(want *core.Node) *core.Node {
	n := *want
	if old, ok := ed.rec.Node(n.Name); ok {
		c := *old
		c.Weight, c.Features, c.Cloud = n.Weight, n.Features, n.Cloud
		stale := c.Notes != nil && c.Notes.Available != nil // the file says which there are
		if stale {
			notes := *c.Notes
			notes.Available, c.Notes = nil, &notes
		}
		if old.Flags.Has(core.NodeUnknown) && n.Hardware.CPUs > 0 { // nobody knows better yet
			c.Hardware, c.Host = n.Hardware, n.Host
		}
		if !SameRegistration(old, &c) || c.Weight != old.Weight || c.Cloud != old.Cloud || stale {
			edit := ed.EditRecord(&c)
			edit.Commit("")
		}
		return &c
	}
	n.ID = ed.rec.TakeNodeID()
	n.Flags |= core.NodeUnknown
	edit := ed.EditRecord(&n)
	if n.Offer != "" {
		edit.CompleteOffer()
	}
	if n.Cloud {
		n.Resume = ed.cfg.ResumeTime
	}
	if n.Reason != "" {
		n.ReasonBy, n.ReasonAt = SystemUser, ed.rec.Now()
	}
	edit.CommitAs(core.NodeJoined, "")
	return &n
}

// FollowFleet gives a node that joins the project and the blocks of its fleet. One that cannot be split so takes no
// jobs until that is put right.
func (e *Edit) FollowFleet() {
	e.Node.Project = e.ed.rec.FleetProject(e.Node)
	h := e.ed.rec.FleetHost(e.Node)
	if h == nil {
		e.Node.Blocks = 0
		return
	}
	blocks, err := e.Node.Hardware.Split(h.Blocks)
	switch {
	case err != nil:
		e.Node.Blocks = 1
		e.Node.Flags |= core.NodeDrain
		e.Node.Reason, e.Node.ReasonBy, e.Node.ReasonAt = Unsplit+err.Error(), SystemUser, e.ed.rec.Now()
	case strings.HasPrefix(e.Node.Reason, Unsplit):
		e.Node.Flags &^= core.NodeDrain
		e.Node.Reason, e.Node.ReasonBy, e.Node.ReasonAt = "", "", 0
		fallthrough
	default:
		e.Node.Blocks = blocks
	}
}

// Unsplit begins the reason of a node whose hardware cannot be split as its fleet says.
const Unsplit = "blocks: "

// FollowFleet gives the nodes of a fleet that has changed its project and their blocks; those that have not joined yet
// get their blocks when they do.
func (ed *Editor) FollowFleet(f *core.Fleet) {
	for i := range f.Hosts {
		n, ok := ed.rec.Node(f.Hosts[i].Node)
		if !ok {
			continue
		}
		edit := ed.Edit(n)
		next := edit.Node
		if next.Project = f.Project; !n.Flags.Has(core.NodeUnknown) && !f.Hosts[i].Leaving {
			edit.FollowFleet()
		}
		if next.Project != n.Project || next.Blocks != n.Blocks || next.Flags != n.Flags {
			edit.Commit("")
		}
	}
}

// JoinedBy reports whether a token is the one that a node joined with last.
func (ed *Editor) JoinedBy(t *core.Token) bool {
	if t.Kind != "join" || t.Used == 0 {
		return false
	}
	n, ok := ed.rec.Node(t.Node)
	return ok && n.Pin != nil && n.Pin.Token == t.ID
}

// RevokeJoined revokes the node that joined with a token, if its key still is that one.
func (ed *Editor) RevokeJoined(t *core.Token) {
	if !ed.JoinedBy(t) {
		return
	}
	n, _ := ed.rec.Node(t.Node)
	edit, pin := ed.Edit(n), people.RevokePin(*n.Pin)
	edit.Node.Pin = &pin
	edit.CommitSilently()
}
