package trie

import (
	"fmt"
	"iter"
	"math/bits"
	"slices"
)

const (
	fan     = 6 // bits of the id used per level
	width   = 1 << fan
	slotMax = width - 1
)

// token marks ownership by its address, so it must not be of size zero.
type token struct{ _ byte }

// Map is an ordered map with non-negative ids as keys. The zero Map is empty and ready.
//
// A Map belongs to one goroutine; what Snapshot returns may be read by any number. Copy a Map with
// Snapshot, never by assignment: two copies would edit the same nodes.
type Map[V any] struct {
	root  *node[V]
	shift uint8 // of the root; 0 means the root is a leaf
	len   int
	owner *token
}

// node is a leaf (vals) or an inner node (kids). Bit s of the bitmap says that slot s is taken;
// the taken slots are packed in order, so a sparse node is small.
type node[V any] struct {
	owner  *token
	bitmap uint64
	kids   []*node[V]
	vals   []V
}

// Len returns the number of entries.
func (m *Map[V]) Len() int { return m.len }

// Snapshot returns the map as it is now. Later edits of m do not show in it, nor the other way
// round. It costs O(1).
func (m *Map[V]) Snapshot() Map[V] {
	m.owner = nil
	return Map[V]{root: m.root, shift: m.shift, len: m.len}
}

// Get returns the value of id.
func (m *Map[V]) Get(id int64) (v V, ok bool) {
	if m.root == nil || !m.fits(id) {
		return v, false
	}
	n := m.root
	for shift := m.shift; shift > 0; shift -= fan {
		i, taken := n.index(slot(id, shift))
		if !taken {
			return v, false
		}
		n = n.kids[i]
	}
	i, taken := n.index(slot(id, 0))
	if !taken {
		return v, false
	}
	return n.vals[i], true
}

// Set gives id the value v. It panics on a negative id.
func (m *Map[V]) Set(id int64, v V) {
	if id < 0 {
		panic(fmt.Sprintf("trie: negative id %d", id))
	}
	if m.owner == nil {
		m.owner = new(token)
	}
	if m.root == nil {
		m.shift = 0
		for !m.fits(id) {
			m.shift += fan
		}
		m.root = &node[V]{owner: m.owner}
	}
	for !m.fits(id) {
		// What there is moves below slot 0 of a new root.
		m.root = &node[V]{owner: m.owner, bitmap: 1, kids: []*node[V]{m.root}}
		m.shift += fan
	}
	m.root = m.own(m.root)
	n := m.root
	for shift := m.shift; shift > 0; shift -= fan {
		s := slot(id, shift)
		i, taken := n.index(s)
		if taken {
			n.kids[i] = m.own(n.kids[i])
		} else {
			n.bitmap |= 1 << s
			n.kids = slices.Insert(n.kids, i, &node[V]{owner: m.owner})
		}
		n = n.kids[i]
	}
	s := slot(id, 0)
	i, taken := n.index(s)
	if taken {
		n.vals[i] = v
		return
	}
	n.bitmap |= 1 << s
	n.vals = slices.Insert(n.vals, i, v)
	m.len++
}

// Delete removes id and reports whether it was there.
func (m *Map[V]) Delete(id int64) bool {
	if _, ok := m.Get(id); !ok {
		return false
	}
	if m.owner == nil {
		m.owner = new(token)
	}
	m.root = m.remove(m.root, m.shift, id)
	m.len--
	return true
}

// remove returns n without id, or nil when nothing is left of it. The id is known to be there.
func (m *Map[V]) remove(n *node[V], shift uint8, id int64) *node[V] {
	s := slot(id, shift)
	i, _ := n.index(s)
	if n.bitmap == 1<<s && (shift == 0 || n.kids[0].lonely(shift-fan)) {
		return nil
	}
	n = m.own(n)
	if shift == 0 {
		n.bitmap &^= 1 << s
		n.vals = slices.Delete(n.vals, i, i+1)
		if len(n.vals) <= cap(n.vals)/4 {
			n.vals = slices.Clone(n.vals) // a straggler must not hold a full leaf
		}
		return n
	}
	if kid := m.remove(n.kids[i], shift-fan, id); kid != nil {
		n.kids[i] = kid
		return n
	}
	n.bitmap &^= 1 << s
	n.kids = slices.Delete(n.kids, i, i+1)
	return n
}

// lonely reports whether only one entry is left below n.
func (n *node[V]) lonely(shift uint8) bool {
	for ; bits.OnesCount64(n.bitmap) == 1; shift -= fan {
		if shift == 0 {
			return true
		}
		n = n.kids[0]
	}
	return false
}

// All yields the entries in ascending order of id. To edit the map meanwhile, iterate over a
// Snapshot.
func (m *Map[V]) All() iter.Seq2[int64, V] { return m.From(0) }

// From is All, beginning at the first id that is not below id.
func (m *Map[V]) From(id int64) iter.Seq2[int64, V] {
	return func(yield func(int64, V) bool) {
		low := max(id, 0)
		if m.root != nil && m.fits(low) {
			m.root.walk(0, m.shift, low, yield)
		}
	}
}

// walk yields what lies below n at or above low; base is the id of n's first slot.
func (n *node[V]) walk(base int64, shift uint8, low int64, yield func(int64, V) bool) bool {
	rest := n.bitmap
	skipped := 0
	if low > base {
		s := slot(low, shift)
		below := rest & (1<<s - 1)
		rest &^= below
		skipped = bits.OnesCount64(below)
	}
	for i := skipped; rest != 0; i++ {
		s := bits.TrailingZeros64(rest)
		rest &= rest - 1
		id := base | int64(s)<<shift
		if shift == 0 {
			if !yield(id, n.vals[i]) {
				return false
			}
		} else if !n.kids[i].walk(id, shift-fan, low, yield) {
			return false
		}
	}
	return true
}

// own returns n if it is this map's to change, else a copy that is, with room for one more.
func (m *Map[V]) own(n *node[V]) *node[V] {
	if n.owner == m.owner {
		return n
	}
	c := &node[V]{owner: m.owner, bitmap: n.bitmap}
	if n.kids != nil {
		c.kids = append(make([]*node[V], 0, min(len(n.kids)+1, width)), n.kids...)
	}
	if n.vals != nil {
		c.vals = append(make([]V, 0, min(len(n.vals)+1, width)), n.vals...)
	}
	return c
}

// index returns where slot s is, or would be, among the packed ones.
func (n *node[V]) index(s uint) (i int, taken bool) {
	bit := uint64(1) << s
	return bits.OnesCount64(n.bitmap & (bit - 1)), n.bitmap&bit != 0
}

// fits reports whether id has a place below a root at m.shift.
func (m *Map[V]) fits(id int64) bool {
	return id >= 0 && (m.shift >= 60 || id>>(m.shift+fan) == 0)
}

func slot(id int64, shift uint8) uint { return uint(id>>shift) & slotMax }
