package live

import (
	"encoding/json"
	"fmt"
	"strconv"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/hostlist"
	"bireme.dev/bireme/internal/core/jsontext"
)

// SubmittedData is what the event of a submission tells.
func SubmittedData(j *core.Job) json.RawMessage {
	spec := j.Spec
	b := append(make([]byte, 0, 96), `{"name":`...)
	b = jsontext.AppendString(b, spec.Name)
	b = append(b, `,"partition":`...)
	b = jsontext.AppendString(b, spec.Partition.String())
	if spec.Array != "" {
		b = append(b, `,"array":`...)
		b = jsontext.AppendString(b, spec.Array)
	}
	return append(b, '}')
}

// StartedData is what the event of a start tells.
func StartedData(j *core.Job) json.RawMessage {
	b := append(make([]byte, 0, 96), `{"attempt":`...)
	b = strconv.AppendInt(b, int64(j.Attempt), 10)
	b = append(b, `,"nodes":`...)
	b = jsontext.AppendString(b, NodeList(j.Alloc))
	if j.Array != nil {
		b = append(b, fmt.Sprintf(`,"array":%d,"task":%d`, j.Array.Base, j.Array.Task)...)
	}
	return append(b, '}')
}

// NodeList folds the nodes of an allocation.
func NodeList(al *core.Alloc) string {
	if al == nil || len(al.Nodes) == 0 {
		return ""
	}
	if len(al.Nodes) == 1 {
		return string(al.Nodes[0].Node)
	}
	names := make([]string, len(al.Nodes))
	for i := range al.Nodes {
		names[i] = string(al.Nodes[i].Node)
	}
	return hostlist.Fold(names)
}

// EndedData is what the event of an end tells.
func EndedData(j *core.Job) json.RawMessage {
	b := append(make([]byte, 0, 96), `{"state":"`...)
	b = append(b, j.State.String()...)
	b = append(b, `","code":`...)
	b = strconv.AppendInt(b, int64(j.Exit.Code), 10)
	b = append(b, `,"signal":`...)
	b = strconv.AppendInt(b, int64(j.Exit.Signal), 10)
	if j.Message != "" {
		b = append(b, `,"message":`...)
		b = jsontext.AppendString(b, j.Message)
	}
	return append(b, '}')
}
