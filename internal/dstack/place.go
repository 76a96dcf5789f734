package dstack

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
)

// fleets reads the names of the fleets a run may use.
func (r *reader) fleets(n *yaml.Node, path string) {
	if isNull(n) {
		return
	}
	items, ok := r.items(n, path)
	if !ok {
		return
	}
	for i, item := range items {
		p := index(path, i)
		if item.Kind == yaml.MappingNode {
			r.mapping(item, p, map[string]readKey{
				"name":    func(r *reader, n *yaml.Node, p string) { r.fleetRef(n, p) },
				"project": refused("fleets of other projects are " + later),
			})
			continue
		}
		r.fleetRef(item, p)
	}
}

func (r *reader) fleetRef(n *yaml.Node, path string) {
	s, ok := r.text(n, path)
	switch {
	case !ok:
	case strings.Contains(s, "/"):
		r.add(n, path, "%q: fleets of other projects are %s", clip(s), later)
	default:
		r.task.Fleets = append(r.task.Fleets, s)
	}
}

// Placed reports whether it takes a look at the fleets to know where the run may be.
func (t *Task) Placed() bool { return t.Nodes > 1 || len(t.Fleets) > 0 }

// Place says in the submission which fleets the run may be on: those it names, and on several nodes only hosts of one
// fleet with placement: cluster. Where there are no fleets a run may be anywhere. A fleet's name is a feature of its
// nodes.
func (t *Task) Place(sub *client.Submit, fleets []client.Fleet) error {
	names := func(ok func(*client.Fleet) bool) (list []string) {
		for i := range fleets {
			if f := &fleets[i]; ok(f) {
				list = append(list, f.Name)
			}
		}
		return list
	}
	all := names(func(*client.Fleet) bool { return true })
	for _, want := range t.Fleets {
		if !slices.Contains(all, want) {
			return core.Errorf(core.NotFound, "%s: fleets: there is no fleet %q%s", t.File, want,
				suggest(want, slices.Clone(all))).Because("invalid_fleet")
		}
	}
	if len(all) == 0 {
		return nil
	}
	may := func(f *client.Fleet) bool { return len(t.Fleets) == 0 || slices.Contains(t.Fleets, f.Name) }
	list := names(may)
	if t.Nodes > 1 {
		if list = names(func(f *client.Fleet) bool { return may(f) && f.Placement == core.PlaceCluster }); len(list) == 0 {
			return core.Errorf(core.Conflict, "%s: nodes: a run on %d nodes needs a fleet with `placement: cluster`, "+
				"and none of %s is", t.File, t.Nodes,
				strings.Join(names(may), ", ")).Because("node_config_unavailable")
		}
	}
	constraint := strings.Join(list, "|")
	if t.Nodes > 1 && len(list) > 1 {
		constraint = "[" + constraint + "]" // all nodes of one of them
	}
	sub.Spec.Extra.Constraint = constraint
	return nil
}

// hostfile writes the nodes' addresses where MPI looks for them, with the GPUs of each as its slots.
const hostfile = `export DSTACK_MPI_HOSTFILE="${TMPDIR:-/tmp}/mpi-hostfile-$SLURM_JOB_ID"
while IFS= read -r host; do
	if [ "${DSTACK_GPUS_PER_NODE:-0}" -gt 0 ]; then echo "$host slots=$DSTACK_GPUS_PER_NODE"; else echo "$host"; fi
done >"$DSTACK_MPI_HOSTFILE" <<HOSTS
$DSTACK_NODES_IPS
HOSTS
`
