package arch

import (
	"path"
	"strings"
)

const modulePath = "bireme.dev/bireme"

// A room is a directory with everything below it that is not a room of its own.
type room struct {
	why  string            // its one job, printed when someone enters without leave
	may  map[string]string // room it may import -> the reason
	pure bool              // no I/O, no goroutines, no wall clock, no unseeded randomness
	free bool              // wiring or tests: may import anything
}

// words is the reason of arrows to core.
const words = "core holds the words every room speaks"

// rooms is docs/architecture.md §4 as data. Arrows to core are written out: that
// a room may speak the common words is a decision too.
var rooms = map[string]room{
	"cmd":   {why: "mains: flags and wiring only", free: true},
	"test":  {why: "end-to-end and fault tests", free: true},
	"bench": {why: "measurements", free: true},

	"internal/arch": {why: "this test", may: map[string]string{}},
	"internal/core": {
		why: "the words and their pure rules; imports nothing of ours", pure: true,
		may: map[string]string{},
	},
	"internal/volume": {why: "network volumes on a node", may: map[string]string{
		"internal/core": words,
		"internal/wire": "it is told what to mount in these words",
	}},
	"internal/policy": {why: "priority, fair tree, limits, QOS", pure: true, may: map[string]string{
		"internal/core": words,
	}},
	"internal/sched": {why: "placement and plans", pure: true, may: map[string]string{
		"internal/core":   words,
		"internal/policy": "the order of the queue comes from policy",
	}},
	"internal/engine/state": {
		why: "every rule of a job's life, as a function of state, inputs and now", pure: true,
		may: map[string]string{
			"internal/core":   words,
			"internal/policy": "admission checks limits",
			"internal/sched":  "a plan is checked again before it is applied",
		},
	},
	"internal/sim": {why: "traces and faults against a virtual clock", pure: true, may: map[string]string{
		"internal/core":         words,
		"internal/policy":       "it runs the production policy",
		"internal/sched":        "it runs the production scheduler",
		"internal/engine/state": "it drives the production rules, never a copy of them",
	}},
	"internal/account": {why: "the users and groups of this machine", may: map[string]string{}},
	"internal/disk":    {why: "when a disk has too little room", may: map[string]string{}},
	"internal/nice":    {why: "a daemon's share of the processors", may: map[string]string{}},
	"internal/procstat": {
		why: "what the kernel says of a process", may: map[string]string{},
	},
	"internal/store": {why: "durable state: one interface, two databases", may: map[string]string{
		"internal/core": words,
	}},
	"internal/backup": {why: "the files of biremed backup", may: map[string]string{
		"internal/core": words,
	}},
	"internal/doctor": {why: "judges what was found out about a cluster", may: map[string]string{
		"internal/core":   words,
		"internal/client": "it judges nodes and servers as the API shows them",
	}},
	"internal/setup": {why: "the questions of a new server and its settings", may: map[string]string{}},
	"internal/engine": {why: "the one writer around engine/state", may: map[string]string{
		"internal/core":         words,
		"internal/engine/state": "it is the goroutine around these rules",
		"internal/sched":        "it runs the Planner beside the writer and hands its plan to the rules",
		"internal/store":        "it commits each batch before anyone acts on it",
	}},
	"internal/config": {why: "the settings as one struct", may: map[string]string{
		"internal/core":   words,
		"internal/policy": "weights and flags are checked by those who know their words",
	}},
	"internal/wire": {why: "messages between server, agent and step", may: map[string]string{
		"internal/core": words,
	}},
	"internal/client": {why: "the services every command is written against", may: map[string]string{
		"internal/core": words,
	}},
	"internal/proxy": {why: "requests of services, passed on to replicas", may: map[string]string{
		"internal/core": words,
	}},
	"internal/server": {why: "HTTP, identity, agent hub, lease, logs, proxy", may: map[string]string{
		"internal/core":         words,
		"internal/proxy":        "it passes requests of services on, as gateways do",
		"internal/account":      "who calls is an account of its host",
		"internal/disk":         "logs leave room for the database",
		"internal/nice":         "programs that it starts do not have its nice value",
		"internal/engine":       "handlers send it commands and read its snapshot",
		"internal/engine/state": "the snapshot's type lives there",
		"internal/store":        "history is asked of the tables",
		"internal/wire":         "it is the server's end of the agents' streams",
		"internal/config":       "it is configured",
		"internal/client":       "it offers the same services in process",
		"internal/backend":      "it asks backends for nodes",
		"internal/slurm":        "jobs have Slurm's variables and messages",
		"internal/dstack":       "runs have dstack's variables",
	}},
	"internal/agent": {why: "the node's daemon", may: map[string]string{
		"internal/core":        words,
		"internal/account":     "it names the callers on its socket",
		"internal/wire":        "it is the node's end of both contracts",
		"internal/config":      "it is configured",
		"internal/procstat":    "a session by ssh joins the job whose processes are the user's",
		"internal/step/cgroup": "it clears the cgroups of a keeper that died",
		"internal/volume":      "it makes and removes volumes",
		"internal/nice":        "agents that a server starts do not have its share of the processors",
	}},
	"internal/step": {why: "the keeper of the users' processes", may: map[string]string{
		"internal/core":        words,
		"internal/account":     "jobs run with the groups the node knows",
		"internal/disk":        "output leaves room for the journal",
		"internal/procstat":    "it counts what processes use, and whose they are",
		"internal/wire":        "it is the step's end of the agent's contract",
		"internal/step/cgroup": "it contains processes",
		"internal/volume":      "it mounts the volumes of jobs",
	}},
	"internal/step/cgroup": {why: "control groups, v1 and v2", may: map[string]string{
		"internal/core": words,
	}},
	"internal/initd": {why: "inside a container: commands, logs, SSH server", may: map[string]string{
		"internal/core": words,
		"internal/wire": "it is the container's end of the agent's contract",
	}},
	"internal/backend": {why: "where nodes come from", may: map[string]string{
		"internal/core": words,
	}},
	"internal/slurm": {why: "the Slurm front end", may: map[string]string{
		"internal/core":     words,
		"internal/account":  "users and groups may be given by number",
		"internal/procstat": "scontrol listpids tells tasks from what they started",
		"internal/client":   "its commands and its HTTP API call the same services",
		"internal/config":   "slurm.conf is read into the one settings struct",
		"internal/policy":   "what a partition and a job cost is shown",
		"internal/wire":     "srun is one end of its step's stream",
	}},
	"internal/dstack": {why: "the dstack front end", may: map[string]string{
		"internal/core":   words,
		"internal/client": "its commands and its HTTP API call the same services",
	}},
	"internal/migrate": {why: "what another system's server holds, read from its database", may: map[string]string{
		"internal/core": words,
	}},
	"internal/translate": {why: "files of one front end as files of the other", may: map[string]string{
		"internal/core":   words,
		"internal/client": "a submission says what a file means",
		"internal/config": "slurm.conf becomes settings",
		"internal/slurm":  "it reads and writes this front end's scripts",
		"internal/dstack": "it reads and writes this front end's YAML",
	}},
	"internal/cli": {why: "the native commands of bireme", may: map[string]string{
		"internal/core":      words,
		"internal/account":   "it shows names for numbers",
		"internal/client":    "every command is written against the services",
		"internal/slurm":     "the same program answers to Slurm's names",
		"internal/dstack":    "apply reads this front end's YAML",
		"internal/sim":       "the simulator is a command",
		"internal/translate": "convert is a command",
		"internal/migrate":   "import takes over what another server holds",
		"internal/wire":      "apply packs files as a container unpacks them",
	}},
}

// ignored are directories that are no part of the product's graph.
var ignored = map[string]bool{
	"tools": true, // a module of its own
}

// roomOf returns the room a package directory belongs to: the longest room name that
// is the directory or one of its parents, or "" for none.
func roomOf(dir string) string {
	for d := dir; d != "."; d = path.Dir(d) {
		if _, ok := rooms[d]; ok {
			return d
		}
	}
	return ""
}

// impureStd are standard packages a pure room may not import. A name stands for
// what lies below it too, except what pureStd lists.
var impureStd = map[string]string{
	"C":             "binaries are static and built without cgo",
	"context":       "nothing in a pure room blocks, so there is nothing to cancel",
	"crypto/rand":   "randomness comes in as a seed",
	"database/sql":  "pure rooms do no I/O",
	"log":           "pure rooms return reasons instead of logging",
	"net":           "pure rooms do no I/O",
	"os":            "pure rooms do no I/O",
	"runtime/pprof": "measuring is the caller's",
	"sync":          "pure rooms have no goroutines, so nothing to lock",
	"syscall":       "pure rooms do no I/O",
}

var pureStd = map[string]bool{"net/netip": true, "net/url": true}

// impureCalls are functions of otherwise pure packages.
var impureCalls = map[string]map[string]string{
	"time": {
		"Now": nowIsArgument, "Since": nowIsArgument, "Until": nowIsArgument,
		"Sleep": waitsOutside, "After": waitsOutside, "AfterFunc": waitsOutside,
		"NewTimer": waitsOutside, "NewTicker": waitsOutside, "Tick": waitsOutside,
	},
	"fmt": {
		"Print": "pure rooms do no I/O", "Printf": "pure rooms do no I/O", "Println": "pure rooms do no I/O",
		"Scan": "pure rooms do no I/O", "Scanf": "pure rooms do no I/O", "Scanln": "pure rooms do no I/O",
	},
}

const (
	nowIsArgument = "now is an argument in pure rooms, so that the same input gives the same output"
	waitsOutside  = "pure rooms do not wait; they return the time to be woken at"
)

// seeded are the functions of math/rand and math/rand/v2 that need a seed or a
// source; all others draw from the global, unseeded one.
var seeded = map[string]bool{
	"New": true, "NewSource": true, "NewZipf": true, "NewPCG": true, "NewChaCha8": true,
	"Rand": true, "Source": true, "Source64": true, "Zipf": true, "PCG": true, "ChaCha8": true,
}

// confined are modules that may be imported only below the named directories.
var confined = []struct {
	modules []string
	below   []string
	why     string
}{
	{
		sqlDrivers,
		[]string{"internal/store", "internal/migrate/dstackdb"},
		"one room knows which database there is, and another reads that of a server that is moved away from",
	},
	{dockerClients, []string{"internal/agent"}, "only the node's daemon starts containers"},
	{
		cloudSDKs,
		[]string{"internal/backend/"},
		"each vendor's SDK stays in its backend's folder, so that it can be left out",
	},
}

var (
	sqlDrivers = []string{
		"modernc.org/sqlite", "github.com/ncruces/go-sqlite3", "github.com/mattn/go-sqlite3",
		"github.com/jackc/pgx", "github.com/lib/pq",
	}
	dockerClients = []string{"github.com/moby/moby", "github.com/docker/docker", "github.com/containerd/containerd"}
	cloudSDKs     = []string{
		"github.com/aws/aws-sdk-go-v2", "cloud.google.com/go", "github.com/Azure/azure-sdk-for-go",
		"github.com/hetznercloud/hcloud-go", "github.com/oracle/oci-go-sdk", "k8s.io/client-go",
	}
)

// unlinked says what a program must not link, directly or through others.
var unlinked = map[string][]struct {
	paths []string
	why   string
}{
	"cmd/bireme": {
		{sqlDrivers, "the user's tool starts in milliseconds and knows no database"},
		{dockerClients, "the user's tool starts in milliseconds and starts no containers"},
		{cloudSDKs, "the user's tool starts in milliseconds and talks to the server only"},
		{
			[]string{"github.com/danielgtaylor/huma", "github.com/prometheus/client_golang"},
			"only the server serves an API and metrics; linking them costs start-up time",
		},
	},
	"cmd/bireme-slurm": {
		{[]string{
			"go.yaml.in/yaml", "github.com", "regexp", modulePath + "/internal/cli",
			modulePath + "/internal/sched",
		}, "it exists to start sooner than cmd/bireme"},
	},
	"cmd/bireme-step": {
		{
			[]string{"net/http", "crypto/tls"},
			"the keeper is exec'd on nodes for every special step: HTTP and TLS cost milliseconds and megabytes",
		},
		{[]string{"database/sql"}, "the keeper knows no database"},
		{sqlDrivers, "the keeper knows no database"},
	},
	"cmd/bireme-init": {
		{[]string{"net/http", "database/sql"}, "it is mounted into every container and stays small"},
		{sqlDrivers, "it is mounted into every container and stays small"},
	},
}

// vague names say nothing about what a package does.
var vague = map[string]bool{
	"util": true, "utils": true, "common": true, "helper": true, "helpers": true,
	"type": true, "types": true, "model": true, "models": true,
}

// within reports whether an import path or directory is one of the given or lies
// below it. An entry that ends in a slash means strictly below.
func within(p string, prefixes []string) bool {
	for _, pre := range prefixes {
		if p == pre || strings.HasPrefix(p, strings.TrimSuffix(pre, "/")+"/") {
			return true
		}
	}
	return false
}
