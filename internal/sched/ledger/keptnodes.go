package ledger

import (
	"bireme.dev/bireme/internal/core"
)

// countKept counts a node among those kept to a user; with -1 it is removed.
func (l *Ledger) countKept(n *core.Node, k int) {
	uid := n.Host.KeptTo()
	if uid == 0 {
		return
	}
	if l.KeptUsers == nil {
		l.KeptUsers = map[uint32]int{}
	}
	if l.KeptUsers[uid] += k; l.KeptUsers[uid] == 0 {
		delete(l.KeptUsers, uid)
	}
}

// KeptUser is the user of a request as far as placement asks: 0 for all who have no nodes of their own.
func (l *Ledger) KeptUser(s *core.Spec) uint32 {
	if l.KeptUsers[s.UID] > 0 {
		return s.UID
	}
	return 0
}
