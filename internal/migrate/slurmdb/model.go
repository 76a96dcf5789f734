package slurmdb

import (
	"slices"
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/core"
)

// Database is what a dump holds of one cluster, without its jobs.
type Database struct {
	Cluster string
	QOS     []core.QOS
	// Projects are the accounts with their members, by name. Ids are the other side's and not kept.
	Projects []core.Project
	Users    []core.User
	Counts   Counts
	Left     []Left // what is not taken over, and why

	associations map[int64]*association
	qosNames     map[int64]core.QOSName
	factors      map[core.QOSName]float64 // usage factors other than 1
	tres         map[int64]string
	wckeys       map[int64]string
	usage        [3][]usageRow // by hour, day and month
	rolled       int64         // seconds: usage is in the tables up to here
	repeated     map[int64]int // rows of job ids that have several
	stepInfo     []stepInfo    // of jobs, by index
}

// Counts say how much there is.
type Counts struct {
	Jobs       int64      // that have ended: ids, not attempts
	Attempts   int64      // of them that went back to the queue
	Unfinished int64      // that wait or run there
	Reused     int64      // older jobs whose id another job has
	Steps      int64      // numbered ones
	MaxJob     core.JobID // the greatest id of all
}

// Left is something that is not taken over, and why.
type Left struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	Why  string `json:"why"`
}

// association is a row of the table of associations.
type association struct {
	id                       int64
	user, account, partition string
	parent                   string
	shares                   int64
	isDefault, deleted       bool
	limits                   core.Limits
	priority                 int64
	defaultQOS               int64
	qos, delta               string
	lft                      int64
}

type qosRow struct {
	id      int64
	deleted bool
	preempt string
	qos     core.QOS
}

type userRow struct {
	name  string
	level int64
}

type usageRow struct {
	assoc, tres, at, seconds int64
}

// stepInfo is what a job's record says of its steps: they come after it in a dump.
type stepInfo struct {
	index     int64
	numbered  int32 // steps
	batch     bool  // it has a batch step
	user, sys int64 // microseconds, of the batch step
	rss       int64
	cpus      int64 // that it had: those of the job's first node
}

// cluster is what pass one has read of one cluster.
type cluster struct {
	assocs   []*association
	jobs     []jobKey
	open     int64
	stepInfo []stepInfo
	steps    int64
	usage    [3][]usageRow
	rolled   int64
	wckeys   map[int64]string
	ofUser   map[string][]string // wckeys
	defaults map[string]string   // default wckey of a user
	max      int64
	other    map[string]int64 // rows of tables that nobody takes over
}

type jobKey struct{ id, index int64 }

// Marks that Slurm writes for "none" and "no limit" in columns of 32 and 64 bits.
const (
	noVal      = 0xfffffffe
	infinite   = 0xffffffff
	noVal64    = -2 // as a signed number
	infinite64 = -1
)

// parseTRES reads "1=4,2=200,1001=2". Resources that the dump does not name, and those without a limit, are left out.
func parseTRES(text string, names map[int64]string) (core.TRES, bool) {
	var list []core.Amount
	for item := range strings.SplitSeq(text, ",") {
		if item == "" {
			continue
		}
		key, val, ok := strings.Cut(item, "=")
		id, err := strconv.ParseInt(key, 10, 64)
		if !ok || err != nil {
			return nil, false
		}
		n, err := strconv.ParseUint(val, 10, 64)
		if err != nil {
			if f, ferr := strconv.ParseFloat(val, 64); ferr == nil && f < 0 {
				continue // -1: cleared
			}
			return nil, false
		}
		if name := names[id]; name != "" && n < 1<<62 {
			list = append(list, core.Amount{Name: name, Count: int64(n)})
		}
	}
	return core.TRESOf(list...), true
}

// idList reads ",1,3,".
func idList(text string) (ids []int64) {
	for item := range strings.SplitSeq(text, ",") {
		if id, err := strconv.ParseInt(strings.TrimLeft(item, "+-"), 10, 64); err == nil && id > 0 {
			ids = append(ids, id)
		}
	}
	return ids
}

// applyDelta changes a list of QOS by ",+2,-3,".
func applyDelta(ids []int64, delta string) []int64 {
	ids = slices.Clone(ids)
	for item := range strings.SplitSeq(delta, ",") {
		id, err := strconv.ParseInt(strings.TrimLeft(item, "+-"), 10, 64)
		switch {
		case err != nil:
		case strings.HasPrefix(item, "-"):
			ids = slices.DeleteFunc(ids, func(x int64) bool { return x == id })
		case !slices.Contains(ids, id):
			ids = append(ids, id)
		}
	}
	return ids
}
