package policy

import (
	"math"
	"time"

	"bireme.dev/bireme/internal/core"
)

// Weights say how much each factor counts.
type Weights struct {
	Age, Assoc, FairShare, JobSize, Partition, QOS uint32
	TRES                                           []Weight
}

// Config is how priorities are worked out.
type Config struct {
	Weights    Weights
	MaxAge     core.Seconds // age counts no further; 0: seven days
	FavorSmall bool
	Flags      Flag
}

// Cluster is what factors are parts of.
type Cluster struct {
	Nodes, CPUs               int64 // that are active
	MaxPart, MaxQOS, MaxAssoc uint32
}

// Job is what policy reads of a job.
type Job struct {
	User    core.UserName
	Project core.ProjectName
	TRES    TRES         // of the whole job, allocated or asked for
	PerNode TRES         // of the node that has most of each
	Limit   core.Seconds // 0 or Forever: none
	Tasks   int64        // jobs it stands for, when it is an array; 0 is 1

	Accrues   core.Time // when its age began to count; 0: not yet
	Submit    core.Time
	PartPrio  uint32
	QOSPrio   uint32
	AssocPrio uint32
	FairShare float64
	PartTRES  TRES // all there is in its partition
	Site      int64
	Nice      int64
}

// Factors are a job's, each 0 to 1 unless a flag says otherwise.
type Factors struct {
	Age, Assoc, FairShare, JobSize, Partition, QOS float64
	TRES                                           []float64 // by Weights.TRES
}

// Factors works out a job's factors at now.
func (c *Config) Factors(j *Job, cl *Cluster, now core.Time) Factors {
	f := Factors{
		Age:       c.age(j, now),
		FairShare: j.FairShare,
		JobSize:   c.size(j, cl),
		Partition: normal(j.PartPrio, cl.MaxPart, c.Flags&NoNormalPart != 0),
		QOS:       normal(j.QOSPrio, cl.MaxQOS, c.Flags&NoNormalQOS != 0),
		Assoc:     normal(j.AssocPrio, cl.MaxAssoc, c.Flags&NoNormalAssoc != 0),
	}
	for _, w := range c.Weights.TRES {
		n := float64(j.TRES.Count(w.Name))
		if c.Flags&NoNormalTRES == 0 {
			if all := j.PartTRES.Count(w.Name); all > 0 {
				n = min(1, n/float64(all))
			} else {
				n = 0
			}
		}
		f.TRES = append(f.TRES, n)
	}
	return f
}

// AgeMax is how long age counts.
func (c *Config) AgeMax() time.Duration {
	if c.MaxAge <= 0 {
		return 7 * 24 * time.Hour
	}
	return c.MaxAge.Duration()
}

func (c *Config) age(j *Job, now core.Time) float64 {
	from := j.Accrues
	if c.Flags&AccrueAlways != 0 {
		from = j.Submit
	}
	if from == 0 || now <= from {
		return 0
	}
	return min(1, float64(now.Sub(from))/float64(c.AgeMax()))
}

func (c *Config) size(j *Job, cl *Cluster) float64 {
	if cl.Nodes <= 0 || cl.CPUs <= 0 {
		return 0
	}
	nodes, cpus := float64(max(1, j.TRES.Count("node"))), float64(j.TRES.Count("cpu"))
	allNodes, allCPUs := float64(cl.Nodes), float64(cl.CPUs)
	var f float64
	switch {
	case c.Flags&SmallRelativeToTime != 0:
		minutes := 1.0
		if j.Limit > 0 {
			minutes = max(1, float64(j.Limit/60))
		}
		f = max(nodes*allCPUs/allNodes, cpus) / minutes / allCPUs
		if c.FavorSmall {
			f = 1 - f
		}
	case c.FavorSmall:
		f = (allNodes - nodes) / allNodes
		if cpus > 0 {
			f = (f + (allCPUs-cpus)/allCPUs) / 2
		}
	default:
		f = nodes / allNodes
		if cpus > 0 {
			f = (f + cpus/allCPUs) / 2
		}
	}
	return min(1, max(0, f))
}

func normal(n, most uint32, raw bool) float64 {
	switch {
	case raw:
		return float64(n)
	case most == 0:
		return 0
	}
	return float64(n) / float64(most)
}

// Priority adds the factors up. It is at least 1: 0 means held.
func (c *Config) Priority(f *Factors, site, nice int64) uint32 {
	w := &c.Weights
	p := float64(w.Age)*f.Age + float64(w.Assoc)*f.Assoc + float64(w.FairShare)*f.FairShare +
		float64(w.JobSize)*f.JobSize +
		float64(w.Partition)*f.Partition + float64(w.QOS)*f.QOS
	for i := range f.TRES {
		p += w.TRES[i].Per * f.TRES[i]
	}
	p += float64(site) - float64(nice)
	return uint32(min(math.MaxUint32, max(1, p)))
}

// Next is the priority that follows old: with INCR_ONLY it never falls.
func (c *Config) Next(old, fresh uint32) uint32 {
	if c.Flags&IncrOnly != 0 {
		return max(old, fresh)
	}
	return fresh
}
