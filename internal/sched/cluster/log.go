package cluster

import "bireme.dev/bireme/internal/sched/ledger"

// Log lists nodes on which something happened. Entries are numbered; of a node only the last entry counts. Old entries
// are cut off.
type Log struct {
	Nodes []*ledger.Node
	First int64 // number of the first entry
}

// Next returns the number of the next entry.
func (l *Log) Next() int64 { return l.First + int64(len(l.Nodes)) }

// At returns the node of an entry.
func (l *Log) At(n int64) *ledger.Node { return l.Nodes[n-l.First] }

// Since returns the nodes from an entry on. The caller has checked that the entry is not cut off.
func (l *Log) Since(n int64) []*ledger.Node { return l.Nodes[n-l.First:] }

func (l *Log) cut(n int64) {
	if k := n - l.First; k > 0 {
		l.Nodes = append(l.Nodes[:0], l.Nodes[k:]...)
		l.First = n
	}
}
