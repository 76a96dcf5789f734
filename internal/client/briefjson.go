package client

import (
	"bytes"
	"fmt"
	"unsafe"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/jsontext"
)

// The listing behind squeue may hold 50,000 jobs. encoding/json decodes it at some 100 MB/s by reflection; what follows
// knows the one flat shape and is several times faster. briefjson_test.go compares both with encoding/json.

// AppendBrief appends b as JSON, the same that encoding/json writes.
func AppendBrief(dst []byte, b *Brief) []byte {
	o := jsontext.BeginObject(dst)
	o.Int("id", int64(b.ID))
	o.OmitInt("base", int64(b.Base))
	o.OmitInt("task", int64(b.Task))
	o.OmitString("tasks", b.Tasks)
	o.OmitInt("het", int64(b.Het))
	o.OmitInt("het_offset", int64(b.HetOffset))
	o.String("name", b.Name)
	o.String("user", string(b.User))
	o.OmitInt("uid", int64(b.UID))
	o.OmitString("project", string(b.Project))
	o.String("part", string(b.Partition))
	o.OmitString("qos", string(b.QOS))
	o.String("state", b.State.String())
	o.OmitInt("flags", int64(b.Flags))
	o.OmitString("reason", string(b.Reason))
	o.OmitInt("prio", int64(b.Priority))
	o.Int("submit", int64(b.Submit))
	o.OmitInt("start", int64(b.Start))
	o.OmitBool("estimate", b.Estimate)
	o.OmitInt("end", int64(b.End))
	o.OmitInt("elapsed", int64(b.Elapsed))
	o.OmitInt("limit", int64(b.Limit))
	o.Int("nodes", int64(b.Nodes))
	o.Int("cpus", int64(b.CPUs))
	o.OmitString("nodelist", b.NodeList)
	o.OmitString("planned", b.Planned)
	o.OmitString("run", b.Run)
	return o.End()
}

// DecodeBriefs reads {"jobs":[...],"seq":N,"now":N,"more":true}. Strings of the result point into data, which must not
// change.
func DecodeBriefs(data []byte) (*BriefList, error) {
	r := jsontext.NewReader(data)
	list := &BriefList{Jobs: make([]Brief, 0, bytes.Count(data, []byte(`{"id":`)))}
	for key := range r.Members() {
		switch string(key) {
		case "jobs":
			decodeJobs(&r, list)
		case "seq":
			list.Seq = r.Int()
		case "now":
			list.Now = core.Time(r.Int())
		case "more":
			list.More = r.Bool()
		case "next":
			list.Next = core.JobID(r.Int())
		default: // of a newer server
			r.Skip()
		}
	}
	r.End()
	if err := r.Err(); err != nil {
		message := fmt.Sprintf("the list of jobs cannot be read: malformed %v", err)
		return nil, &core.Error{Code: core.Internal, Message: message, Err: err}
	}
	return list, nil
}

func decodeJobs(r *jsontext.Reader, list *BriefList) {
	if r.Null() {
		return
	}
	for range r.Elements() {
		list.Jobs = append(list.Jobs, Brief{})
		decodeBrief(r, &list.Jobs[len(list.Jobs)-1])
	}
}

// aliasText reads a string without copying it: the text outlives the list and is never written.
func aliasText(r *jsontext.Reader) string {
	b := r.Text()
	return unsafe.String(unsafe.SliceData(b), len(b))
}

func decodeBrief(r *jsontext.Reader, b *Brief) {
	for key := range r.Members() {
		switch string(key) {
		case "id":
			b.ID = core.JobID(r.Int())
		case "base":
			b.Base = core.JobID(r.Int())
		case "task":
			b.Task = r.Int32()
		case "tasks":
			b.Tasks = aliasText(r)
		case "het":
			b.Het = core.JobID(r.Int())
		case "het_offset":
			b.HetOffset = r.Int32()
		case "name":
			b.Name = aliasText(r)
		case "user":
			b.User = core.UserName(aliasText(r))
		case "uid":
			b.UID = r.Uint32()
		case "project":
			b.Project = core.ProjectName(aliasText(r))
		case "part":
			b.Partition = core.PartitionName(aliasText(r))
		case "qos":
			b.QOS = core.QOSName(aliasText(r))
		case "state":
			if err := b.State.UnmarshalText(r.Text()); err != nil && r.Err() == nil {
				r.Fail("%w", err)
			}
		case "flags":
			b.Flags = core.JobFlag(r.Uint16())
		case "reason":
			b.Reason = core.Reason(aliasText(r))
		case "prio":
			b.Priority = r.Uint32()
		case "submit":
			b.Submit = core.Time(r.Int())
		case "start":
			b.Start = core.Time(r.Int())
		case "end":
			b.End = core.Time(r.Int())
		case "elapsed":
			b.Elapsed = core.Seconds(r.Int())
		case "limit":
			b.Limit = core.Seconds(r.Int())
		case "nodes":
			b.Nodes = r.Int32()
		case "cpus":
			b.CPUs = r.Int32()
		case "nodelist":
			b.NodeList = aliasText(r)
		case "planned":
			b.Planned = aliasText(r)
		case "estimate":
			b.Estimate = r.Bool()
		case "run":
			b.Run = aliasText(r)
		default: // of a newer server
			r.Skip()
		}
	}
}
