// Package trie is an ordered map from ids to values whose snapshots cost nothing to take.
//
// It is how the one writer publishes its state: it edits its own Map in place and, after each
// commit, hands out a Snapshot. Taking one is O(1); afterwards the first edit near an id copies
// the few nodes on the way to it (at most 64 values each), everything else stays shared. A batch
// of changes therefore costs what it changed, not what there is.
//
// The tree is a radix tree over the id, six bits a level, as high as the greatest id needs:
//
//	shift 12   [ 0 . 2 ]          inner: bitmap + children, packed
//	shift  6   [ 0 1 ] [ 63 ]
//	shift  0   [..] [..] [..]     leaf: bitmap + values, packed
//
// Nodes carry the token of the Map that made them. A Map changes a node in place only when the
// token is its own; Snapshot takes the token away, which turns every node there is immutable.
package trie
