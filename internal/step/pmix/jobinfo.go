package pmix

import (
	"slices"
	"strconv"
	"strings"
)

// Placement is a node of the step with the ranks of its tasks.
type Placement struct {
	Name  string
	Ranks []int32
}

// kval packs a key with a value that add packs after its type.
func (w *writer) kval(key string, t uint16, add func()) {
	w.one().string(key)
	w.uint16(t)
	add()
}

func (w *writer) kvUint32(key string, v uint32) { w.kval(key, typeUint32, func() { w.uint32(v) }) }

func (w *writer) kvUint16(key string, v uint16)   { w.kval(key, typeUint16, func() { w.uint16(v) }) }
func (w *writer) kvRank(key string, v uint32)     { w.kval(key, typeRank, func() { w.uint32(v) }) }
func (w *writer) kvString(key, v string)          { w.kval(key, typeString, func() { w.string(v) }) }
func (w *writer) kvBool(key string, v bool)       { w.kval(key, typeBool, func() { w.bool(v) }) }
func (w *writer) infoUint32(key string, v uint32) { w.info(key, typeUint32); w.uint32(v) }
func (w *writer) infoRank(key string, v uint32)   { w.info(key, typeRank); w.uint32(v) }
func (w *writer) infoString(key, v string)        { w.info(key, typeString); w.string(v) }

// info begins an element of an array: key, flags, type.
func (w *writer) info(key string, t uint16) {
	w.string(key)
	w.uint32(0)
	w.uint16(t)
}

// jobInfo is what a task is told of its step when it connects: the answer to its first request.
func (n *Node) jobInfo(d dialect) []byte {
	w := &writer{dialect: d}
	w.one().string(n.cfg.Namespace)
	hosts := n.hosts()
	names := make([]string, len(hosts))
	for i := range hosts {
		names[i] = hosts[i].Name
	}
	size := uint32(n.cfg.Size)
	w.kvUint32("pmix.session.id", n.cfg.Job)
	w.kvUint32("pmix.univ.size", size)
	w.kvString("pmix.rm.name", "slurm")
	w.kvUint32("pmix.job.size", size)
	w.kvUint32("pmix.max.size", size)
	w.kvUint32("pmix.num.nodes", uint32(len(names)))
	w.kvUint32("pmix.job.napps", 1)
	w.kvString("pmix.jobid", strconv.Itoa(int(n.cfg.Job)))
	w.kvString("pmix.nspace", n.cfg.Namespace)
	w.kvString("pmix.nlist", strings.Join(names, ","))
	w.kvRank("pmix.offset", 0)
	w.kvBool("pmix.spawned", false)
	w.kval("pmix.app.arr", typeArray, func() {
		w.uint16(typeInfo)
		w.size(3)
		w.infoUint32("pmix.appnum", 0)
		w.infoUint32("pmix.app.size", size)
		w.infoRank("pmix.aldr", 0)
	})
	for i := range hosts {
		w.nodeInfo(i, &hosts[i])
	}
	for i := range hosts {
		w.procInfo(i, &hosts[i])
	}
	return w.b
}

// hosts are the nodes of the step, each once: the parts of a heterogeneous step may share one.
func (n *Node) hosts() []Placement {
	var list []Placement
	for _, node := range n.cfg.Nodes {
		i := slices.IndexFunc(list, func(p Placement) bool { return p.Name == node.Name })
		if i < 0 {
			list = append(list, Placement{Name: node.Name, Ranks: slices.Clone(node.Ranks)})
		} else {
			list[i].Ranks = append(list[i].Ranks, node.Ranks...)
		}
	}
	return list
}

// nodeInfo packs what is known of a node of the step.
func (w *writer) nodeInfo(at int, node *Placement) {
	peers := make([]string, len(node.Ranks))
	for i, r := range node.Ranks {
		peers[i] = strconv.Itoa(int(r))
	}
	w.kval("pmix.node.arr", typeArray, func() {
		w.uint16(typeInfo)
		w.size(6)
		w.infoString("pmix.hname", node.Name)
		w.infoUint32("pmix.nodeid", uint32(at))
		w.infoString("pmix.lpeers", strings.Join(peers, ","))
		w.infoUint32("pmix.local.size", uint32(len(node.Ranks)))
		w.infoUint32("pmix.node.size", uint32(len(node.Ranks)))
		w.infoRank("pmix.lldr", uint32(node.Ranks[0]))
	})
}

// procInfo packs what is known of each task of a node.
func (w *writer) procInfo(at int, node *Placement) {
	for local, rank := range node.Ranks {
		p := &writer{dialect: w.dialect}
		p.one().uint32(uint32(rank))
		p.kvRank("pmix.rank", uint32(rank))
		p.kvString("pmix.hname", node.Name)
		p.kvUint32("pmix.nodeid", uint32(at))
		p.kvUint16("pmix.lrank", uint16(local))
		p.kvUint16("pmix.nrank", uint16(local))
		p.kvUint32("pmix.appnum", 0)
		p.kvRank("pmix.apprank", uint32(rank))
		p.kvRank("pmix.grank", uint32(rank))
		p.kvUint32("pmix.reinc", 0)
		w.kval("pmix.pblob", typeBytes, func() { w.blob(p.b) })
	}
}
