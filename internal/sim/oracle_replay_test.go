package sim_test

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"testing"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state"
	"bireme.dev/bireme/internal/sched"
)

var show = flag.Bool("show", false, "log what each hash of TestOracle covers")

// oracle is a log being replayed: a state and a planner as the engine runs them, and what a store would have.
type oracle struct {
	t       *testing.T
	cfg     state.Config
	st      *state.State
	planner *sched.Planner
	stored  stored
	out     bytes.Buffer // what the next hash covers
	lines   int
}

// hash is of everything since the hash before it.
type hash struct {
	sum  string
	line int // the last line it covers
}

// replay gives the commands of the log to a new state and returns a hash for each batch, which is most often one
// command. Ticks in a row have one hash.
func (l *commandLog) replay(t *testing.T) (hashes []hash) {
	o := &oracle{t: t, stored: newStored()}
	for i := range l.lines {
		x := l.parse(t, i)
		o.line(x)
		if *show {
			t.Logf("%d: %.1000s", i, l.lines[i])
		}
		o.lines++
		if !x.Seal && !x.Restart || i+1 < len(l.lines) && bytes.Contains(l.lines[i+1], []byte(`"kind":"Tick"`)) {
			continue
		}
		sum := sha256.Sum256(o.out.Bytes())
		hashes = append(hashes, hash{fmt.Sprintf("%x", sum[:4]), i})
		if *show {
			t.Logf("%s:\n%s", hashes[len(hashes)-1].sum, o.out.Bytes())
		}
		o.out.Reset()
	}
	return hashes
}

func (o *oracle) line(x *line) {
	switch {
	case x.Log != "":
		o.load(*x.Config, 1_700_000_000_000_000)
	case x.Restart:
		o.load(*x.Config, o.st.Now())
		o.plan()
	case x.Seal:
		o.flush()
		o.plan()
		if o.lines%8 == 0 {
			o.snapshot(o.st.Snapshot())
		}
	default:
		in, err := x.Decode()
		if err != nil {
			o.t.Fatal(err)
		}
		o.st.Advance(x.Now)
		reply, err := o.st.Apply(in)
		o.printf("answer %s %s\n", core.CodeOf(err), core.ReasonOf(err))
		if err == nil {
			o.reply(reply)
		}
		o.feed()
	}
}

// load builds state and planner from what is stored.
func (o *oracle) load(cfg state.Config, now core.Time) {
	o.cfg = cfg
	o.st = state.New(cfg, o.stored.image(o.t))
	o.st.Advance(now)
	o.planner = sched.New(state.PlannerConfig(cfg))
	o.planner.Apply(o.st.All())
}

// feed tells the planner what changed, as the engine does after each input.
func (o *oracle) feed() {
	c := o.st.PlannerChanges()
	if c.NewConfig != nil {
		o.planner = sched.New(*c.NewConfig)
	}
	o.planner.Apply(c)
}

// flush ends a batch: what it changed is stored.
func (o *oracle) flush() {
	o.stored.write(o, o.st.Flush())
	o.feed()
	o.printf("wake %d\n", o.st.NextWake())
}

func (o *oracle) printf(format string, a ...any) { fmt.Fprintf(&o.out, format, a...) }

// json writes a value whose JSON names are stored or sent.
func (o *oracle) json(what string, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		o.t.Fatal(err)
	}
	if what == "policy" {
		b = idField.ReplaceAll(b, nil)
	}
	o.printf("%s %s\n", what, b)
}

// reply writes what a command answered.
func (o *oracle) reply(v any) {
	switch v := v.(type) {
	case *state.Submitted:
		o.printf("submitted %d %t\n", v.ID, v.Duplicate)
	case *state.Started:
		o.printf("started %d\n", v.ID)
	case *state.Reconciled:
		for _, k := range v.Kill {
			o.printf("kill %d.%d.%s\n", k.Job, k.Attempt, k.Step)
		}
	case *state.Reconfigured:
		o.json("changes", v.Changes)
	case *state.Removed:
		o.printf("removed %t\n", v.Gone)
	case *state.Purged:
		o.printf("purged %d %t\n", v.Removed, v.More)
	case *state.StepsCreated:
		for _, st := range v.Steps {
			o.json("reply", st)
		}
	case *core.Job: // a trial
		o.json("job", v)
		o.trial(v)
	case *core.User, *core.Token, *core.Node, *core.FleetPlan, *core.PolicyDiff, *core.AdvanceReservation:
		o.json("reply", v)
	case nil:
	default:
		o.t.Fatalf("the oracle does not know a reply of type %T", v)
	}
}

func (o *oracle) trial(j *core.Job) {
	x := o.planner.Trial(j, o.st.Now(), 1<<30, nil)
	o.printf("trial %d %t %s %d %v %v %s %d %t\n", x.Start, x.Estimate, x.Partition, x.CPUs, x.Nodes, x.Preempts,
		x.Reason.Code, x.Reason.Expected, x.Reason.Estimate)
}

// plan writes what the planner decides now, with a forecast from time to time.
func (o *oracle) plan() {
	p := o.planner.Pass(o.st.Now())
	for i := range p.Starts {
		o.start("start", &p.Starts[i])
	}
	for _, x := range p.Preempts {
		o.printf("preempt %d for %d in %s, %d starts, on %v\n", x.Job, x.For, x.Partition, x.Starts, x.Nodes)
	}
	for _, x := range p.Provision {
		o.printf("provision %q %d %q for %d at %d, price %d\n", x.Offer, x.Count, x.Node, x.For, x.Ready, x.Price)
	}
	o.printf("look again %d\n", p.WakeAt)
	o.printf("reserved %v\n", slices.Sorted(maps.Keys(p.ReservedNodes())))
	if o.lines%4 == 0 && o.planner.PendingCount() > 0 {
		f := o.planner.Forecast(p)
		for !f.Step(1 << 30) {
		}
		p = p.WithForecast(f)
	}
	for j := range o.st.Snapshot().Jobs() {
		if j.State != core.Pending {
			continue
		}
		w := p.Reason(j)
		o.printf("wait %d %s %d %t %v\n", j.ID, w.Code, w.Expected, w.Estimate, p.Nodes(j.ID))
	}
}

func (o *oracle) start(what string, s *sched.Start) {
	o.printf("%s %d task %d %t limit %d", what, s.Job, s.Task, s.Array, s.TimeLimit)
	o.json("", s.Alloc)
	for _, a := range s.Suspends {
		o.printf("suspends %d", a.Job)
		o.json("", a.Lent)
	}
	for i := range s.Rest {
		o.start("with", &s.Rest[i])
	}
}

// snapshot writes what readers work out from the state.
func (o *oracle) snapshot(v *state.Snapshot) {
	o.printf("snapshot %d %d %d\n", v.Seq(), v.NextJob(), v.Now())
	for j := range v.Jobs() {
		f := v.Factors(j)
		o.printf("job %d %d %t %d %d %d %d\n", j.ID, f.Priority, f.Fixed, f.Base, f.Run, f.Site, f.Nice)
		for _, x := range f.List {
			o.printf(" %s %.9g %.9g", x.Name, x.Value, x.Weight)
		}
	}
	uses := v.Uses()
	for _, n := range slices.Sorted(maps.Keys(uses)) {
		u := uses[n]
		o.printf("use %s %d %d %v %v\n", n, u.CPUs, u.Mem, u.Gres, u.Jobs)
		o.json("units", u.Units)
	}
	for _, s := range v.Shares(v.Now()) {
		o.printf("share %s %s %s %d %.9g %.9g\n", s.Project, s.User, s.Parent, s.Shares, s.Used.Raw, s.Factor)
	}
	for _, l := range v.Licenses() {
		o.printf("license %s %d %d %d\n", l.Name, l.Total, l.Used, l.Reserved)
	}
	o.json("policy", v.Policy())
}

// stored is what a store has: records in their stored form, by key.
type stored struct {
	next, nextNode int64
	lastIDs        core.LastIDs
	seq            int64
	now            core.Time
	rows           map[string]map[string][]byte
	tokens         map[string]core.Token // their hashes are a column of their own
}

func newStored() stored {
	return stored{rows: map[string]map[string][]byte{}, tokens: map[string]core.Token{}}
}

func (s *stored) put(o *oracle, table, key string, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		o.t.Fatal(err)
	}
	if s.rows[table] == nil {
		s.rows[table] = map[string][]byte{}
	}
	s.rows[table][key] = b
	if table == "project" || table == "qos" {
		b = idField.ReplaceAll(b, nil)
	}
	o.printf("%s %s %s\n", table, key, b)
}

// idField is the id of a project, a member or a QOS: the recordings are older than these.
var idField = regexp.MustCompile(`,"id":[0-9]+`)

func (s *stored) drop(o *oracle, table, key string) {
	delete(s.rows[table], key)
	o.printf("%s %s is gone\n", table, key)
}

// keyRow is what is stored of a submit key.
type keyRow struct {
	Job  core.JobID
	At   core.Time
	User core.UserName
}

func idKey(id core.JobID) string { return fmt.Sprintf("%012d", id) }

// write stores a batch.
func (s *stored) write(o *oracle, c *core.Changes) {
	for _, x := range c.Specs {
		s.put(o, "spec", idKey(x.ID), x.Spec)
	}
	for _, x := range c.Jobs {
		row := *x
		row.Spec = nil
		s.put(o, "job", idKey(x.ID), &row)
	}
	for _, x := range c.Steps {
		s.put(o, "step", fmt.Sprintf("%012d.%06d", x.Job, x.ID), x)
	}
	s.drops(o, c)
	for _, x := range c.Nodes {
		s.put(o, "node", string(x.Name), x)
	}
	for _, x := range c.Users {
		s.put(o, "user", string(x.Name), x)
	}
	for _, x := range c.Projects {
		s.put(o, "project", string(x.Name), x)
	}
	spent := slices.SortedFunc(slices.Values(c.Spent), func(a, b *core.Spent) int {
		return cmp.Or(cmp.Compare(a.Project, b.Project), cmp.Compare(a.User, b.User))
	})
	for _, x := range spent {
		s.put(o, "spent", string(x.Project)+"/"+string(x.User), x)
	}
	for _, x := range c.Tokens {
		s.tokens[x.ID] = *x
		s.put(o, "token", x.ID, x)
	}
	for _, x := range c.Runs {
		s.put(o, "run", x.ID, x)
	}
	for _, x := range c.Keys {
		s.put(o, "key", x.Key, keyRow{x.Job, x.At, x.User})
	}
	for _, x := range c.QOS {
		s.put(o, "qos", string(x.Name), x)
	}
	for _, x := range c.Reservations {
		s.put(o, "reservation", x.Name, x)
	}
	for _, x := range c.Fleets {
		s.put(o, "fleet", x.Name, x)
	}
	for _, x := range c.Events {
		o.json("event", x)
		s.seq = x.Seq
	}
	s.next, s.nextNode, s.now = int64(c.NextJob), c.NextNode, max(s.now, c.Now)
	if c.LastIDs != nil {
		s.lastIDs = *c.LastIDs
	}
	o.printf("next %d %d at %d, %d blobs\n", c.NextJob, c.NextNode, c.Now, len(c.Blobs))
}

func (s *stored) drops(o *oracle, c *core.Changes) {
	for _, n := range c.GoneNodes {
		s.drop(o, "node", string(n))
	}
	for _, n := range c.GoneUsers {
		s.drop(o, "user", string(n))
	}
	for _, n := range c.GoneProjects {
		s.drop(o, "project", string(n))
		maps.DeleteFunc(s.rows["spent"],
			func(k string, _ []byte) bool { return bytes.HasPrefix([]byte(k), []byte(string(n)+"/")) })
	}
	for _, n := range c.GoneQOS {
		s.drop(o, "qos", string(n))
	}
	for _, n := range c.GoneReservations {
		s.drop(o, "reservation", n)
	}
	for _, n := range c.GoneFleets {
		s.drop(o, "fleet", n)
	}
	for _, n := range c.GoneTokens {
		delete(s.tokens, n)
		s.drop(o, "token", n)
	}
}

// image is what a store loads.
func (s *stored) image(t *testing.T) *state.Image {
	img := &state.Image{Seq: s.seq, NextJob: core.JobID(s.next), NextNode: s.nextNode, LastIDs: s.lastIDs, Now: s.now}
	live := map[core.JobID]bool{}
	for _, j := range load[core.Job](t, s, "job") {
		if j.Live() {
			j.Spec = decode[core.Spec](t, s.rows["spec"][idKey(j.SpecID)])
			img.Jobs = append(img.Jobs, j)
			live[j.ID] = true
		}
	}
	for _, x := range load[core.Step](t, s, "step") {
		if live[x.Job] {
			img.Steps = append(img.Steps, x)
		}
	}
	img.Nodes = load[core.Node](t, s, "node")
	slices.SortFunc(img.Nodes, func(a, b *core.Node) int { return cmp.Compare(a.ID, b.ID) })
	img.Users, img.Projects, img.QOS = load[core.User](t, s, "user"), load[core.Project](t, s, "project"),
		load[core.QOS](t, s, "qos")
	img.Reservations, img.Fleets = load[core.AdvanceReservation](t, s, "reservation"), load[core.Fleet](t, s, "fleet")
	img.Spent = load[core.Spent](t, s, "spent")
	for _, id := range slices.Sorted(maps.Keys(s.tokens)) {
		x := s.tokens[id]
		img.Tokens = append(img.Tokens, &x)
	}
	for _, r := range load[core.Run](t, s, "run") {
		if r.Ended == 0 {
			img.Runs = append(img.Runs, r)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.rows["key"])) {
		k := decode[keyRow](t, s.rows["key"][name])
		img.Keys = append(img.Keys, core.SubmitKey{Key: name, Job: k.Job, At: k.At, User: k.User})
	}
	return img
}

func decode[T any](t *testing.T, b []byte) *T {
	t.Helper()
	v := new(T)
	if err := json.Unmarshal(b, v); err != nil {
		t.Fatal(err)
	}
	return v
}

func load[T any](t *testing.T, s *stored, table string) (out []*T) {
	for _, k := range slices.Sorted(maps.Keys(s.rows[table])) {
		out = append(out, decode[T](t, s.rows[table][k]))
	}
	return out
}
