package policy

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"slices"

	"bireme.dev/bireme/internal/core"
)

// Assoc is a user's or an account's place in the tree, with what it may and what it used. User is empty for an account.
type Assoc struct {
	Project core.ProjectName // for a user, the account it belongs to
	Parent  core.ProjectName // for an account; empty: the root
	User    core.UserName

	Shares      int64
	ShareParent bool // Fairshare=parent
	Priority    uint32
	Used        Usage // of the whole subtree
	Limits      Limits
}

// Tree is the associations of a cluster. The root is an account of the name Root.
type Tree struct {
	list  []*node // accounts by name, then users by account and name; list[0] is the root
	index map[assocKey]*node
}

// Root is the name of the account above all others.
const Root core.ProjectName = "root"

type assocKey struct {
	project core.ProjectName
	user    core.UserName
}

type node struct {
	Assoc
	parent *node
	kids   []*node // as the tree has them
	peers  []*node // as shares are compared: those of accounts with ShareParent stand in their place

	shareSum int64
	usageSum float64
	level    float64 // LevelFS
	norm     float64 // product of share ratios
	ue       float64 // effective usage
	factor   float64
}

// NewTree builds a tree. The order of the list does not matter. It fails on accounts without a known parent, on circles
// and on associations that are there twice.
func NewTree(list []Assoc) (*Tree, error) {
	t := &Tree{index: map[assocKey]*node{}}
	for i := range list {
		n := &node{Assoc: list[i]}
		k := assocKey{n.Project, n.User}
		if t.index[k] != nil {
			return nil, core.Errorf(core.Invalid, "%s is listed twice", n.name())
		}
		t.index[k] = n
		t.list = append(t.list, n)
	}
	root := t.index[assocKey{project: Root}]
	if root == nil {
		root = &node{Assoc: Assoc{Project: Root}}
		t.index[assocKey{project: Root}] = root
		t.list = append(t.list, root)
	}
	slices.SortFunc(t.list, func(a, b *node) int {
		return cmp.Or(boolOrder(a != root, b != root), boolOrder(a.User != "", b.User != ""),
			cmp.Compare(a.Project, b.Project), cmp.Compare(a.User, b.User))
	})
	for _, n := range t.list[1:] {
		above := n.Parent
		if n.User != "" {
			above = n.Project
		} else if above == "" {
			above = Root
		}
		if n.parent = t.index[assocKey{project: above}]; n.parent == nil {
			return nil, core.Errorf(core.Invalid, "%s is in project %s, which does not exist", n.name(), above)
		}
		n.parent.kids = append(n.parent.kids, n)
	}
	for _, n := range t.list {
		steps := 0
		for up := n; up != root; up = up.parent {
			if steps++; up == nil || steps > len(t.list) {
				return nil, core.Errorf(core.Invalid, "%s is its own ancestor", n.name())
			}
		}
	}
	return t, nil
}

func boolOrder(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

func (n *node) name() string {
	if n.User != "" {
		return fmt.Sprintf("%s in project %s", n.User, n.Project)
	}
	return fmt.Sprintf("project %s", n.Project)
}

// find gives an association; a user without one of its own has its account's.
func (t *Tree) find(account core.ProjectName, user core.UserName) *node {
	if n := t.index[assocKey{account, user}]; n != nil {
		return n
	}
	return t.index[assocKey{project: account}]
}

// FairShare works out every association's factor, by the rule that flags choose. Factor gives it.
func (t *Tree) FairShare(flags Flag, damp int64) {
	root := t.list[0]
	for _, n := range t.list {
		n.peers, n.shareSum, n.usageSum = n.peers[:0], 0, 0
		if n.ShareParent {
			continue // those below it are compared further up
		}
		n.gather(n.kids)
		for _, k := range n.peers {
			n.shareSum += k.Shares
			n.usageSum += k.Used.Raw
		}
	}
	switch {
	case flags&(NoFairTree|DepthOblivious) == 0:
		t.fairTree()
	case flags&DepthOblivious != 0:
		root.norm, root.ue, root.factor = 1, 1, 1
		root.oblivious(root.usageSum)
	default:
		root.norm, root.ue, root.factor = 1, 1, 1
		root.classic(root.usageSum, float64(max(1, damp)))
	}
}

// gather lists those that are compared with each other below n.
func (n *node) gather(kids []*node) {
	for _, k := range kids {
		switch {
		case !k.ShareParent:
			n.peers = append(n.peers, k)
		case k.User == "":
			n.gather(k.kids)
		}
	}
}

// Factor is an association's fair-share, 0 to 1; FairShare must have been called. 0 and false for one there is not.
func (t *Tree) Factor(account core.ProjectName, user core.UserName) (float64, bool) {
	if n := t.find(account, user); n != nil {
		return n.factor, true
	}
	return 0, false
}

// Standing is how an association's factor came about, as sshare shows it.
type Standing struct {
	Project   core.ProjectName
	User      core.UserName
	Norm      float64 // classic: product of share ratios; fair tree: share of its level
	Effective float64 // classic: effective usage; fair tree: part of its level's usage
	Level     float64 // fair tree: Norm / Effective
	Factor    float64
}

// Standings lists all associations: accounts by name, then users.
func (t *Tree) Standings() []Standing {
	out := make([]Standing, len(t.list))
	for i, n := range t.list {
		out[i] = Standing{n.Project, n.User, n.norm, n.ue, n.level, n.factor}
	}
	return out
}

// Stood is an association with how it stands.
type Stood struct {
	*Assoc
	Standing
}

// Associations goes through all of them: accounts by name, then users.
func (t *Tree) Associations() iter.Seq[Stood] {
	return func(yield func(Stood) bool) {
		for i, s := range t.Standings() {
			if !yield(Stood{&t.list[i].Assoc, s}) {
				return
			}
		}
	}
}

// fairTree ranks users: level by level, those further below their share first.
func (t *Tree) fairTree() {
	users := 0
	for _, n := range t.list {
		n.factor, n.norm, n.ue, n.level = 0, 0, 0, 0
		if n.User != "" {
			users++
		}
	}
	t.list[0].norm, t.list[0].ue = 1, 1
	for _, n := range t.list {
		for _, k := range n.peers {
			if n.shareSum > 0 {
				k.norm = float64(k.Shares) / float64(n.shareSum)
			}
			if n.usageSum > 0 {
				k.ue = k.Used.Raw / n.usageSum
			}
			switch {
			case k.norm == 0:
				k.level = 0
			case k.ue == 0:
				k.level = math.Inf(1)
			default:
				k.level = k.norm / k.ue
			}
		}
	}
	r := ranking{total: users, rank: users, next: users}
	r.visit([]*node{t.list[0]})
}

// ranking hands out ranks. next is the rank of one more user if it ties with nobody, rank what those of the present tie
// get.
type ranking struct{ total, rank, next int }

// visit ranks what is below accounts that are equal.
func (r *ranking) visit(accounts []*node) {
	var kids []*node
	for _, a := range accounts {
		a.factor = float64(r.rank) / float64(max(1, r.total))
		kids = append(kids, a.peers...)
		r.likeParent(a, a.kids)
	}
	slices.SortFunc(kids, func(a, b *node) int {
		return cmp.Or(cmp.Compare(b.level, a.level), cmp.Compare(a.Project, b.Project), cmp.Compare(a.User, b.User))
	})
	start := r.next
	for len(kids) > 0 {
		n := 1
		for n < len(kids) && kids[n].level == kids[0].level {
			n++
		}
		if r.next != start {
			r.rank = r.next // the first of a level tie with what their account tied with
		}
		var equal []*node
		for _, k := range kids[:n] {
			if k.User == "" {
				equal = append(equal, k)
			} else {
				r.give(k, k.Shares > 0)
			}
		}
		if len(equal) > 0 {
			r.visit(equal)
		}
		kids = kids[n:]
	}
}

// likeParent ranks users with Fairshare=parent as their account; accounts with it are passed through.
func (r *ranking) likeParent(a *node, kids []*node) {
	for _, k := range kids {
		switch {
		case !k.ShareParent:
		case k.User != "":
			r.give(k, true)
		default:
			k.factor = a.factor
			r.likeParent(a, k.kids)
		}
	}
}

func (r *ranking) give(n *node, ranked bool) {
	if ranked {
		n.factor = float64(r.rank) / float64(r.total)
	}
	r.next--
}

// classic gives those below n their factor: 2^-(UE/S/damp).
func (n *node) classic(total, damp float64) {
	for _, k := range n.peers {
		ua, share := 0.0, 0.0
		if total > 0 {
			ua = k.Used.Raw / total
		}
		if n.shareSum > 0 {
			share = float64(k.Shares) / float64(n.shareSum)
		}
		k.norm, k.ue = n.norm*share, ua
		if n.parent != nil {
			k.ue = ua + (n.ue-ua)*share
		}
		k.factor = 0
		if k.norm > 0 {
			k.factor = math.Exp2(-k.ue / k.norm / damp)
		}
		k.classic(total, damp)
	}
	n.sameBelow(n.kids)
}

// oblivious gives those below n their factor by the ratio of usage to share, so that depth does not matter.
func (n *node) oblivious(total float64) {
	for _, k := range n.peers {
		k.norm, k.ue, k.factor = 0, 0, 0
		if n.shareSum > 0 {
			k.norm = n.norm * float64(k.Shares) / float64(n.shareSum)
		}
		if k.norm > 0 {
			ratio := 0.0
			if over := n.ue / n.norm; over > 0 && k.Used.Raw > 0 && total > 0 {
				r := (k.Used.Raw / total / k.norm) / (n.usageSum / total / n.norm)
				power, lo, lr := 1.0, math.Log(over), math.Log(r)
				if lo*lr < 0 {
					power = 1 / (1 + 25*lo*lo)
				}
				ratio = over * math.Pow(r, power)
			}
			k.ue, k.factor = ratio*k.norm, math.Exp2(-ratio)
		}
		k.oblivious(total)
	}
	n.sameBelow(n.kids)
}

// sameBelow gives those with Fairshare=parent what n has.
func (n *node) sameBelow(kids []*node) {
	for _, k := range kids {
		if k.ShareParent {
			k.norm, k.ue, k.factor = n.norm, n.ue, n.factor
			if k.User == "" {
				n.sameBelow(k.kids)
			}
		}
	}
}
