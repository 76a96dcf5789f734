package conf

import (
	"fmt"
	"strings"
	"time"

	"bireme.dev/bireme/internal/config"
	"bireme.dev/bireme/internal/slurm/conf/keys"
)

// unbounded is how long Prolog and Epilog may take where slurm.conf says nothing: as Slurm shows it, in seconds.
const unbounded = config.Duration(65534 * time.Second)

// unrecognized begins the fault of a key that Slurm does not have. scontrol knows it by this.
const unrecognized = "unrecognized key: "

// shown is what scontrol show config prints of the file: keys in Slurm's spelling, values in its words.
func (c *Conf) shown() map[string]string {
	out := map[string]string{}
	hosts := 0
	var perGPU []string
	for _, s := range c.Settings {
		k, ok := keys.Find(s.Key)
		if !ok || k.Form == "own" {
			continue
		}
		switch strings.ToLower(k.Name) {
		case "slurmctldhost", "controlmachine":
			out[fmt.Sprintf("SlurmctldHost[%d]", hosts)] = s.Value
			hosts++
		case "defcpupergpu":
			perGPU = append(perGPU, "DefCpuPerGPU="+s.Value)
		case "defmempergpu":
			perGPU = append(perGPU, "DefMemPerGPU="+s.Value)
		case "accountingstoragepass", "jobcomppass": // no secret is shown
		default:
			out[k.Name] = k.Canonical(s.Value)
		}
	}
	if len(perGPU) > 0 {
		out["JobDefaults"] = strings.Join(perGPU, ",")
	}
	return out
}

// other notes a key of a line or of another file that has no effect here; one that Slurm does not have is a fault.
func (v *converter) other(file string, at Where, p Pair) {
	k, ok := keys.In(file, p.Key)
	switch {
	case !ok:
		v.fault(at, unrecognized+"%s", p.Key)
	case k.Effect != keys.Acts:
		v.note(at, p.Key, p.Value, k.Why)
	}
}

// otherFiles checks the keys of what nothing else reads whole.
func (v *converter) otherFiles() {
	records := func(file string, list []Record) {
		for i := range list {
			for _, p := range list[i].Keys {
				v.other(file, list[i].Where, p)
			}
		}
	}
	records("gres.conf", v.conf.Gres)
	records("topology.conf", v.conf.Switches)
	records("topology.conf", v.conf.Blocks)
	records(keys.DownLine, v.conf.Down)
	for i := range v.conf.NodeSets {
		records(keys.NodeSetLine, []Record{v.conf.NodeSets[i].Record})
	}
	for _, file := range []string{"job_container.conf", "acct_gather.conf", "burst_buffer.conf"} {
		for _, s := range v.conf.Rest[file] {
			v.other(file, s.Where, Pair{s.Key, s.Value})
		}
	}
}
