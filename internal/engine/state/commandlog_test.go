package state

import (
	"bytes"
	"compress/gzip"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/coretest"
	"bireme.dev/bireme/internal/policy"
)

// recordTo names a file that gets the commands of every world the tests make. The oracle of package sim replays it:
//
//	go test ./internal/engine/state -record ../../sim/testdata/oracle.gz \
//		-run '^Test(Scenarios|Fleet|People|Members|Bounds|Split|Policy|Priority|LawsOfNouns|CommandLogs)'
var recordTo = flag.String("record", "", "write the commands given to every world into this file")

// commandLog is what one world was told, a JSON object a line. All methods do nothing on a nil one.
type commandLog struct {
	t   failer
	out bytes.Buffer
}

var logs = struct {
	sync.Mutex
	byName map[string]*commandLog
}{byName: map[string]*commandLog{}}

// newCommandLog begins the log of a world. Of worlds with the same name only the first is recorded.
func newCommandLog(t failer, cfg Config) *commandLog {
	named, ok := t.(interface{ Name() string })
	if !ok || *recordTo == "" {
		return nil
	}
	name := strings.TrimPrefix(named.Name(), "Test")
	logs.Lock()
	defer logs.Unlock()
	if logs.byName[name] != nil {
		return nil
	}
	l := &commandLog{t: t}
	logs.byName[name] = l
	l.line(map[string]any{"log": name, "config": cfg})
	return l
}

func (l *commandLog) line(v any) { fmt.Fprintln(&l.out, asJSON(l.t, v)) }

func (l *commandLog) input(in Input, now core.Time) {
	if l == nil {
		return
	}
	rec, err := RecordInput(in, now)
	if err != nil {
		l.t.Fatal(err)
	}
	l.line(rec)
}

func (l *commandLog) flush() {
	if l != nil {
		l.line(map[string]bool{"seal": true})
	}
}

func (l *commandLog) restart(cfg Config) {
	if l != nil {
		l.line(map[string]any{"restart": true, "config": cfg})
	}
}

func writeLogs(file string) error {
	var buf bytes.Buffer
	z, err := gzip.NewWriterLevel(&buf, gzip.BestCompression)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(logs.byName)) {
		if _, err := z.Write(logs.byName[name].out.Bytes()); err != nil {
			return err
		}
	}
	if err := z.Close(); err != nil {
		return err
	}
	return os.WriteFile(file, buf.Bytes(), 0o644)
}

// TestCommandLogs plays random worlds for the oracle: with -record only, since TestLaws plays more of them.
func TestCommandLogs(t *testing.T) {
	if *recordTo == "" {
		t.Skip("it only records: see -record")
	}
	for seed := range uint64(46) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			anything(t, rand.New(rand.NewPCG(seed, 7)).IntN, 200, false, (*chaos).nouns, (*chaos).rest, (*chaos).rest)
		})
	}
	for _, rule := range []string{"easy", "fcfs", "easy-sjbf", "conservative", "sjf-easy"} {
		for seed := range uint64(4) {
			t.Run(fmt.Sprintf("%s-%d", rule, seed), func(t *testing.T) { busyCluster(t, rule, seed) })
		}
	}
}

// busyCluster plays a cluster of 24 nodes with a long queue, under limits and preemption, with offers and, in some, a
// network.
func busyCluster(t *testing.T, rule string, seed uint64) {
	choose := rand.New(rand.NewPCG(seed, 11)).IntN
	how, _ := core.ParseRule(rule)
	cfg := Config{
		Rule: how, Reservations: int32(choose(3)), MaxRequeues: 3, Licenses: []core.License{{Name: "l", Total: 6}},
		Partitions: []core.Partition{
			{Name: "main", Nodes: "n[1-24]", Default: true},
			{Name: "gpu", Nodes: "n[17-24]", PriorityTier: 2},
			{Name: "debug", Nodes: "n[1-4]", MaxTime: 1800, PriorityTier: 3, QOS: "mid"},
		},
		Offers: []core.Offer{{
			Name: "vm", Hardware: core.Hardware{CPUs: 16, Memory: 64 * core.GiB}, Max: 4, PowerUp: 120,
			Price: 1_000_000,
		}}[:choose(2)],
		Priority: &Priority{
			Config: policy.Config{Weights: policy.Weights{Age: 1000, FairShare: 5000, JobSize: 500, QOS: 2000, Partition: 100}},
			Period: 300,
		},
	}
	cfg.Charges.HalfLife = 7200
	mayPush(&cfg, choose)
	if choose(2) == 0 {
		cfg.Topology = &core.Topology{Kind: core.TopologyTree, Switches: []core.Switch{
			{Name: "s1", Nodes: "n[1-8]"},
			{Name: "s2", Nodes: "n[9-16]"},
			{Name: "s3", Nodes: "n[17-24]"},
			{Name: "top", Switches: "s[1-3]"},
		}}
	}
	c := &chaos{world: newWorld(t, cfg), choose: choose}
	for i, u := range []string{"alice", "bob", "carol", "dave"} {
		c.must(&EnsureUser{UID: uint32(1000 + i), UnixName: u})
	}
	for _, q := range pushers {
		c.must(&PutQOS{By: root, QOS: &q})
	}
	for i := range 24 {
		n := coretest.Node(core.NodeName(fmt.Sprint("n", i+1))).CPUs(8).Mem(32 * core.GiB).Features("fast").Build()
		if i >= 16 {
			n.Hardware.Gres, n.Features = []core.Gres{{Name: "gpu", Type: "a", Count: 4}}, []string{"slow"}
		}
		c.must(&Register{Node: n.Name, Hardware: n.Hardware, Host: n.Host, Roles: n.Roles, Features: n.Features})
	}
	for range 350 {
		switch choose(8) {
		case 0, 1, 2:
			c.queue()
		case 3, 4:
			c.plan()
		case 5:
			c.exit()
			c.done()
		case 6:
			c.now = c.now.Add(time.Duration(choose(20)) * time.Minute)
			c.st.Advance(c.now)
			_, _ = c.do(&Tick{})
		default:
			[]func(){c.cancel, c.update, c.requeue, c.nodeState, c.again, c.asks, c.suspend}[choose(7)]()
		}
	}
}

// queue submits a job of a shape that is common on clusters.
func (c *chaos) queue() {
	i := c.choose(4)
	by := core.Identity{User: core.UserName([]string{"alice", "bob", "carol", "dave"}[i]), UID: uint32(1000 + i)}
	b := coretest.Job().Name("j").User(by.User).Time(time.Duration(1+c.choose(240)) *
		time.Minute).Partition(core.PartitionName(c.pick("", "main", "gpu,main", "debug,main", "gpu")))
	b.Set(func(s *core.Spec) {
		s.UID, s.QOS, s.Requeue = by.UID, core.QOSName(c.pick("", "low", "low", "mid", "high")), c.choose(3) > 0
	})
	switch c.choose(6) {
	case 0:
		b.Nodes(int32(1 + c.choose(12))).Exclusive()
	case 1:
		b.Array(c.pick("0-5", "1-20"), int32(c.choose(4))).CPUs(int32(1 + c.choose(4)))
	case 2:
		b.Gres("gpu", c.pick("", "a"), int64(1+c.choose(4))).Nodes(int32(1 + c.choose(3)))
	case 3:
		b.Tasks(int32(1 + c.choose(60))).MemPerCPU(core.Bytes(1+c.choose(6)) * core.GiB)
	case 4:
		b.Set(func(s *core.Spec) {
			s.Shape.NodesMin, s.Shape.NodesMax = int32(1+c.choose(4)), int32(5+c.choose(8))
			s.Extra = &core.Extra{
				Constraint: coretest.Constraint(c.pick("", "fast", "slow|fast", "[fast|slow]")),
				Licenses:   coretest.Licenses(c.pick("", "", "l:2")),
				Switches:   coretest.Switches(c.pick("", "1@30:00")),
			}
		})
	default:
		b.CPUs(int32(1 + c.choose(8))).Mem(core.Bytes(1+c.choose(16)) * core.GiB)
	}
	_, _ = c.do(&Submit{By: by, Spec: b.Spec()})
}

// rest is what the laws leave out: fleets, tokens, keys, health, trials and updates of all kinds.
func (c *chaos) rest() {
	switch c.choose(5) {
	case 0:
		c.fleets()
	case 1:
		c.tokens()
	case 2:
		c.nodeLife()
	case 3:
		c.asks()
	default:
		c.planner()
	}
}

func (c *chaos) fleets() {
	name, num := c.pick("lab", "cloud"), int32(c.choose(3))
	switch c.choose(7) {
	case 0, 1:
		_, _ = c.do(&PutFleet{
			By: c.who(), Fleet: fleetOf(name, []string{"a", "b", "c"}[:1+c.choose(3)]...),
			Force: c.choose(2) == 0, Dry: c.choose(4) == 0,
		})
	case 2:
		_, _ = c.do(&DropFleet{By: root, Name: name, Hosts: [][]int32{nil, {num}}[c.choose(2)], Force: c.choose(2) == 0})
	case 3:
		_, _ = c.do(&FleetNews{
			Fleet: name, Num: num, HostKey: ptr("key"), Cause: ptr(c.pick("", "refused")),
			Gone: c.choose(2) == 0,
		})
	case 4:
		_, _ = c.do(&TrustFleet{By: c.who(), Name: name, Hosts: []int32{num}})
	case 5:
		_, _ = c.do(&ResealFleet{Name: name, Texts: map[string]string{"AA==": "BB=="}})
	default:
		n := coretest.Node(core.NodeName(fmt.Sprint(name, "-", num))).Build()
		_, _ = c.do(&Register{Node: n.Name, Hardware: n.Hardware, Host: n.Host, Roles: n.Roles, Fleet: name})
	}
}

func (c *chaos) tokens() {
	id := c.pick("t1", "t2", "t3")
	switch c.choose(7) {
	case 0, 1:
		t := &core.Token{
			ID: id, Hash: core.Hash{byte(c.choose(200)), 3}, Kind: "user", User: "alice", Created: c.now,
			Scopes: []core.Scope{core.ScopeSubmit},
		}
		_, _ = c.do(&PutToken{By: c.who(), Token: t})
	case 2:
		_, _ = c.do(&RevokeToken{By: c.who(), ID: id})
	case 3:
		_, _ = c.do(&RotateToken{
			By: c.who(), ID: id, Hash: core.Hash{byte(c.choose(200)), 4}, Overlap: 60,
			Expires: c.now.Add(time.Hour),
		})
	case 4:
		_, _ = c.do(&TokensUsed{Uses: []TokenUse{{ID: id, At: c.now}}})
	case 5:
		_, _ = c.do(&RevokeJWTs{By: c.who(), User: "alice"})
	default:
		_, _ = c.do(&PurgeTokens{Before: c.now, Max: 2})
	}
}

func (c *chaos) nodeLife() {
	n := c.node()
	switch c.choose(8) {
	case 0:
		_, _ = c.do(&NodeKey{
			By: root, Node: n, Do: c.pick(KeyPin, KeyRenew, KeyUse, KeyRevoke, KeyKeep),
			Key: c.pick("k1", "k2"), Ends: c.now.Add(time.Hour),
		})
	case 1:
		_, _ = c.do(&RemoveNode{By: root, Node: n, Drain: c.choose(2) == 0, Now: c.choose(3) == 0})
	case 2:
		sick := []core.SickUnit{{Name: "gpu", Index: int32(c.choose(2)), Reason: "xid"}}
		_, _ = c.do(&UnitHealth{Node: n, Sick: sick[:c.choose(2)], Return: c.choose(2) == 0})
	case 3:
		faults := []core.NodeFault{{Check: "disk", Text: "full", Drain: c.choose(2) == 0}}
		_, _ = c.do(&NodeHealth{Node: n, Faults: faults[:c.choose(2)], Return: c.choose(2) == 0})
	case 4:
		_, _ = c.do(&Fenced{Node: n, Jobs: []core.JobID{c.live()}})
	default:
		verbs := core.NodeVerbs
		_, _ = c.do(&UpdateNode{
			By: root, Node: n, State: verbs[c.choose(len(verbs))], Next: core.NodeVerb(c.pick("", "resume", "down")),
			Reason:      c.pick("", "r"),
			ResumeAfter: core.Seconds(c.choose(3)-1) * 600, System: c.choose(5) == 0,
		})
	}
}

// asks submits and changes jobs with words that have a grammar of their own.
func (c *chaos) asks() {
	x := &core.Extra{
		Constraint: coretest.Constraint(
			c.pick("", "fast", "fast|slow", "[fast|slow]", "fast*2", "!fast", "fast&(slow|old)", "&")),
		Licenses: coretest.Licenses(c.pick("", "l", "l:2", "l:2|m:1", "l,m", "nosuch")),
		Switches: coretest.Switches(c.pick("", "1", "1@10:00", "x")),
		NodeList: c.pick("", "", "n[1-2]"),
		Dependency: coretest.Dependency(
			c.pick("", "", "afterok:1", "afterany:2:3", "singleton", "afterok:1?afterok:2", "after")),
	}
	if c.choose(3) == 0 {
		in := &UpdateJob{By: c.who(), Job: c.live()}
		switch c.choose(4) {
		case 0:
			in.Dependency = &x.Dependency
		case 1:
			in.Spec.Constraint = &x.Constraint
		case 2:
			in.Wish.Licenses = &x.Licenses
		default:
			in.QOS = ptr(core.QOSName(c.pick("low", "mid", "high", "nosuch")))
		}
		_, _ = c.do(in)
		return
	}
	b := coretest.Job().Name("a").CPUs(int32(1 + c.choose(2))).Nodes(int32(1 +
		c.choose(2))).Partition(core.PartitionName(c.pick("", "small,main", "short,nosuch")))
	b.User("alice").Set(func(s *core.Spec) { s.UID, s.Extra = 1000, x })
	in := Submit{By: core.Identity{User: "alice", UID: 1000}, Spec: b.Spec(), Strict: c.choose(4) == 0}
	if c.choose(2) == 0 {
		_, _ = c.do(&Try{Submit: in})
		return
	}
	_, _ = c.do(&in)
}

func (c *chaos) planner() {
	switch c.choose(4) {
	case 0:
		_, _ = c.do(&PlannerFailed{Job: []core.JobID{0, c.live()}[c.choose(2)], Why: "a fault"})
	case 1:
		_, _ = c.do(&Preempt{Job: c.live(), For: c.live(), Partition: "main", Room: 1})
	case 2:
		_, _ = c.do(&PutMember{
			By: c.who(), Project: "p", User: core.UserName(c.pick("alice", "bob")),
			Role: core.Role(c.pick("user", "manager", "")),
		})
	default:
		_, _ = c.do([]Input{
			&DropProject{By: root, Name: "p"},
			&DropQOS{By: root, Name: core.QOSName(c.pick("low", "mid"))},
		}[c.choose(2)])
	}
}
