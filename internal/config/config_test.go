package config

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"bireme.dev/bireme/internal/core"
)

func TestDefaultsAreSound(t *testing.T) {
	t.Parallel()
	if err := Default().Check(); err != nil {
		t.Fatal(err)
	}
}

func TestEveryFaultAtOnceWithItsLine(t *testing.T) {
	t.Parallel()
	text := `cluster: Big Cluster
timers:
  heartbeat: 10 parsecs
  fense: 5m
  silent_after: 1s
partitions:
  - name: a
    nodes: n[1-
  - name: a
    nodes: ALL
    default: maybe
server:
  inbox: lots
  listen: nowhere
  advertise: ["one:1", "[two:2"]
`
	_, err := Parse("site.yml", []byte(text))
	var e *core.Error
	if !errors.As(err, &e) || e.Code != core.Invalid {
		t.Fatalf("got %v", err)
	}
	var got []string
	for _, f := range e.Faults {
		got = append(got, f.Path)
	}
	want := []string{
		"line 3: timers.heartbeat", "line 4: timers.fense", "line 11: partitions[1].default", "line 13: server.inbox",
		"line 1: cluster", "line 14: server.listen", "line 15: server.advertise", "line 8: partitions[0].nodes",
		"line 9: partitions[1].name",
		"line 5: timers.silent_after",
	}
	if d := cmp.Diff(want, got, cmpopts.SortSlices(func(a, b string) bool { return a < b })); d != "" {
		t.Errorf("faults (-want +got):\n%s\n%+v", d, e.Faults)
	}
	if !strings.Contains(e.Faults[1].Message, "did you mean fence?") {
		t.Errorf("no suggestion: %q", e.Faults[1].Message)
	}
}

func TestScheduling(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"{rule: conservative}":            "",
		"{rule: easy, reservations: 10}":  "",
		"{select: socket}":                "",
		"{rule: backfill}":                "scheduling.rule",
		"{rule: fcfs, reservations: 2}":   "scheduling.reservations",
		"{rule: easy, reservations: -1}":  "scheduling.reservations",
		"{rule: easy, reservations: all}": "scheduling.reservations",
		"{select: thread}":                "scheduling.select",
	} {
		c, err := Parse("site.yml", []byte("scheduling: "+text))
		var e *core.Error
		switch {
		case want == "":
			if err != nil || c.Scheduling.Select == "" {
				t.Errorf("%s: %+v, %v", text, c, err)
			}
		case !errors.As(err, &e) || len(e.Faults) != 1 || !strings.HasSuffix(e.Faults[0].Path, want):
			t.Errorf("%s: %v, want a fault of %s", text, err, want)
		}
	}
}

func TestSyntaxErrorNamesTheLine(t *testing.T) {
	t.Parallel()
	_, err := Parse("x.yml", []byte("cluster: a\n  b: c\n"))
	var e *core.Error
	if !errors.As(err, &e) || len(e.Faults) != 1 || e.Faults[0].Path != "line 2" {
		t.Fatalf("got %+v", err)
	}
}

func TestShowReadsBackAndTellsOrigins(t *testing.T) {
	t.Parallel()
	text := `
cluster: c1
dir: /srv/x
server: {store: "postgres://u@h/db?x=1", names: [a.example, b.example]}
partitions:
  - {name: cpu, nodes: "n[1-4]", default: yes, max_time: 7d, default_time: 1h}
  - {name: gpu, nodes: "g1", max_time: unlimited}
nodes:
  - {names: "n[1-4]", cpus: 8, memory: 16G, gres: ["gpu:a100:8"]}
timers: {fence: 5m}
`
	c, err := Parse("site.yml", []byte(text), "timers.heartbeat=200ms", "timers.silent_after=1s", "admins=ann,bob")
	if err != nil {
		t.Fatalf("%+v", err)
	}
	var b strings.Builder
	if err := c.Show(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"# override", "# default", "# site.yml:10", "heartbeat: 200ms", "fence: 5m"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("show lacks %q:\n%s", want, b.String())
		}
	}
	if strings.Contains(b.String(), "-:") {
		t.Errorf("show prints a setting that has no name:\n%s", b.String())
	}
	if _, err := Parse("site.yml", nil, "scheduling.-=CR_CORE"); err == nil {
		t.Error("scheduling.- was taken for a setting")
	}
	again, err := Parse("again.yml", []byte(b.String()))
	if err != nil {
		t.Fatalf("show is not readable: %+v\n%s", err, b.String())
	}
	if d := cmp.Diff(c, again, cmpopts.IgnoreUnexported(Config{}), cmpopts.EquateEmpty()); d != "" {
		t.Errorf("show changed the settings (-was +is):\n%s", d)
	}
	if c.Timers.Heartbeat.D() != 200*time.Millisecond {
		t.Errorf("override lost: %v", c.Timers.Heartbeat)
	}
	if n := c.CoreNodes(); len(n) != 4 || n[3].Name != "n4" ||
		n[0].Hardware.Gres[0] != (core.Gres{Name: "gpu", Type: "a100", Count: 8}) {
		t.Errorf("nodes: %+v", n)
	}
	if p := c.CorePartitions(); p[0].MaxTime != 7*86400 || p[1].MaxTime != 0 {
		t.Errorf("partitions: %+v", p)
	}
}

func TestUnits(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"5m": 5 * time.Minute, "200ms": 200 * time.Millisecond,
		"2d": 48 * time.Hour, "1d12h": 36 * time.Hour, "0": 0,
	} {
		var d Duration
		if err := d.UnmarshalText([]byte(text)); err != nil || d.D() != want {
			t.Errorf("%s: %v, %v", text, d, err)
		}
	}
	for text, want := range map[string]int64{
		"512": 512, "4K": 4096, "4KiB": 4096, "16M": 16 << 20, "2G": 2 << 30,
		"1T": 1 << 40, "-1": -1,
	} {
		var s Size
		if err := s.UnmarshalText([]byte(text)); err != nil || int64(s) != want {
			t.Errorf("%s: %v, %v", text, s, err)
		}
	}
	for _, text := range []string{"x", "99999999999T", "", "1Q"} {
		var s Size
		if err := s.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q was taken as the size %d", text, s)
		}
	}
}

// What is written of a partition's standing reaches the scheduler.
func TestPartitionsKeepTheirStanding(t *testing.T) {
	t.Parallel()
	c := Default()
	c.Partitions = []Partition{{Name: "a", Nodes: "ALL", Default: true, PriorityTier: 3, PriorityFactor: 7}}
	if p := c.CorePartitions()[0]; p.PriorityTier != 3 || p.PriorityFactor != 7 {
		t.Errorf("tier %d, factor %d", p.PriorityTier, p.PriorityFactor)
	}
}

// TestDocumentedSettings reads the example of the manual.
func TestDocumentedSettings(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/manual/settings.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "```yaml\n")
	text, _, ok := strings.Cut(text, "```\n")
	if !ok {
		t.Fatal("there is no example")
	}
	if c, err := Parse("settings.md", []byte(text)); err != nil || len(c.Partitions) != 2 || len(c.CoreLicenses()) != 2 {
		t.Errorf("%+v, %+v", err, c)
	}
}

func TestNodesAndBounds(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"nodes: [{weight: 3}]": "expected names of nodes, such as n[1-8]",
		"partitions: [{name: a, nodes: ALL, min_nodes: 5, max_nodes: 3}]": "5 exceeds max_nodes, 3: no job could run",
	} {
		_, err := Parse("x.yml", []byte(text))
		var e *core.Error
		if !errors.As(err, &e) || e.Faults[0].Message != want {
			t.Errorf("%s: %+v, want %s", text, e, want)
		}
	}
}

func TestLicenses(t *testing.T) {
	t.Parallel()
	c, err := Parse("x.yml", []byte("licenses: [matlab:10, ansys]\n"))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(c.CoreLicenses()), "[{ansys 1} {matlab 10}]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for text, want := range map[string]string{
		"licenses: [matlab:ten]": `"matlab:ten" is not name[:count]`, "licenses: [\":3\"]": `":3" is not name[:count]`,
		"licenses: [a, b, a:2]": "a is listed twice", "licenses: [a:-1]": `"a:-1" is not`,
	} {
		_, err := Parse("x.yml", []byte(text))
		var e *core.Error
		if !errors.As(err, &e) || !strings.Contains(e.Faults[0].Message, want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// A lifetime that no cluster could live with is refused where it is set, unless all of it is a trial on loopback.
func TestCertificateLifetimes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"certificates: {node: 1s}":                                           "certificates.node",
		"certificates: {server: 59m}":                                        "certificates.server",
		"certificates: {node: 731d}":                                         "certificates.node",
		"certificates: {node: 1h, server: 730d}":                             "",
		"server: {agent_listen: '127.0.0.1:7441'}\ncertificates: {node: 2s}": "",
	} {
		_, err := Parse("site.yml", []byte(text))
		var e *core.Error
		refused := errors.As(err, &e)
		if refused != (want != "") || refused && (len(e.Faults) != 1 || !strings.Contains(e.Faults[0].Path, want)) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
