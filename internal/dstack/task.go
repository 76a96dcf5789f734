package dstack

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/nearest"
)

// MaxSize is the longest configuration that is read.
const MaxSize = 1 << 20

// Task is a configuration of `type: task` that has been read and checked.
type Task struct {
	File         string // for messages
	Name         string // "" when the file gives none
	Shell        string // absolute path
	Commands     []command
	Env          []variable
	WorkDir      string // absolute, "~" or "~/…"; "" for the user's home
	Nodes        int32
	CPUs         int32        // on each node; 0 when not asked for
	Memory       core.Bytes   // on each node
	GPUs         core.Gres    // on each node; Count 0 for none
	GPUAsk       *core.GPUAsk // which of them will do; nil: those of GPUs.Type
	Disk         core.Bytes   // on each node
	Priority     int32
	MaxDuration  core.Seconds // 0: the partition's default; Forever: off
	StopDuration core.Seconds
	Requeue      bool     // start again after an interruption
	Fleets       []string // it may use; none: any
	Wait         bool     // wait for nodes that could do it, even if there are none now
	Files        []File   // the container begins with

	box    box
	source []byte
}

// command is one item of `commands`, with its place for messages.
type command struct {
	text string
	node *yaml.Node
}

// variable is one item of `env`. A bare one takes its value from the caller.
type variable struct {
	name, value string
	bare        bool
	node        *yaml.Node
}

// reader fills a Task or a Fleet and collects faults.
type reader struct {
	faults
	task    *Task
	fleet   *Fleet // of a fleet's configuration
	aliases int
}

// Parse reads a configuration. file is only a name for messages. All faults come in one error.
func Parse(file string, src []byte) (*Task, error) {
	r := &reader{faults: faults{file: file}, task: &Task{File: file, Shell: "/bin/bash", Nodes: 1, source: src}}
	if len(src) > MaxSize {
		return nil, core.Errorf(core.TooLarge, "%s: the configuration exceeds %d bytes: it has %d", file, MaxSize, len(src))
	}
	root, err := r.document(src)
	if err != nil {
		return nil, err
	}
	if r.checkType(root) {
		r.mapping(root, "", taskKeys)
		r.settleContainer(root)
	}
	if err := r.err(); err != nil {
		return nil, err
	}
	return r.task, nil
}

// document gives the top mapping of the one document in src.
func (r *reader) document(src []byte) (*yaml.Node, error) {
	dec := yaml.NewDecoder(bytes.NewReader(src))
	var doc, more yaml.Node
	err := dec.Decode(&doc)
	switch {
	case errors.Is(err, io.EOF):
		r.add(nil, "", "the file is empty; a configuration starts with `type: task`")
		return nil, r.err()
	case err != nil:
		r.add(nil, "", "%s", yamlMessage(err))
		return nil, r.err()
	}
	if !errors.Is(dec.Decode(&more), io.EOF) {
		r.add(&more, "", "expected one configuration per file")
		return nil, r.err()
	}
	var root *yaml.Node
	if len(doc.Content) > 0 {
		root = r.resolve(doc.Content[0])
	}
	if root == nil || root.Kind != yaml.MappingNode {
		r.add(root, "", "expected a mapping that starts with `type: task`")
		return nil, r.err()
	}
	return root, nil
}

// yamlMessage words a syntax error of the parser without its prefix.
func yamlMessage(err error) string {
	return strings.TrimPrefix(strings.ReplaceAll(err.Error(), "\n", " "), "yaml: ")
}

// checkType reports whether the configuration is a task; if not, it says so.
func (r *reader) checkType(root *yaml.Node) bool {
	for i := 0; i+1 < len(root.Content); i += 2 {
		if root.Content[i].Value != "type" {
			continue
		}
		v := r.resolve(root.Content[i+1])
		switch {
		case v == nil || v.Kind != yaml.ScalarNode:
			r.add(root.Content[i], "type", "must be a word; this version runs: task")
		case v.Value == "task":
			return true
		case otherTypes[v.Value] != "":
			r.add(v, "type", "%s: this version runs tasks only; %s", v.Value, otherTypes[v.Value])
		default:
			r.add(v, "type", "%q is not a configuration type%s", clip(v.Value),
				suggest(v.Value, append(keysOf(otherTypes), "task")))
		}
		return false
	}
	r.add(root, "type", "is missing; this version runs `type: task`")
	return false
}

// mapping reads every key of n by table; keys that the table lacks are faults.
func (r *reader) mapping(n *yaml.Node, path string, table map[string]readKey) {
	for _, e := range r.entries(n, path) {
		p := join(path, e.key.Value)
		read, known := table[e.key.Value]
		if !known {
			r.unknown(e.key, p, keysOf(table))
			continue
		}
		read(r, e.value, p)
	}
}

func (r *reader) unknown(key *yaml.Node, path string, known []string) {
	switch path {
	case "cpu", "memory", "gpu", "disk", "shm_size":
		r.add(key, path, "unknown key; it belongs below resources")
		return
	}
	r.add(key, path, "unknown key%s", suggest(key.Value, known))
}

// suggest gives "; did you mean X?" or nothing. known is sorted here, so that ties always go the same way.
func suggest(got string, known []string) string {
	slices.Sort(known)
	return nearest.Hint(got, known)
}

func keysOf[V any](m map[string]V) []string { return slices.Collect(maps.Keys(m)) }

func index(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }
