package cmd

import (
	"io"
	"iter"
	"strings"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core/plain"
	"bireme.dev/bireme/internal/slurm"
	"bireme.dev/bireme/internal/slurm/report"
	"bireme.dev/bireme/internal/slurm/schema"
)

// DocumentForm is how --json or --yaml ask for a listing.
type DocumentForm struct {
	Version schema.Version
	yaml    bool
	command []string
	release string
}

// Document reads --json and --yaml with the version they may name; nil: neither was given. When it cannot, it complains
// and ok is false.
func (w *World) Document(f Flags) (form *DocumentForm, ok bool) {
	for _, v := range f.Values {
		if v.Key != "json" && v.Key != "yaml" {
			continue
		}
		form = &DocumentForm{Version: schema.Default, yaml: v.Key == "yaml", command: []string{w.Name}, release: Version}
		if text := v.Value; text != "" {
			if form.Version, _, ok = schema.Parse(text); !ok {
				w.Errorf("Unable to find plugin: data_parser/%s", text)
				w.Hint("--" + v.Key + " takes " + strings.Join(DocumentVersions(), ", "))
				return nil, false
			}
		}
	}
	return form, true
}

// DocumentVersions are those that --json and --yaml take.
func DocumentVersions() []string {
	list := []string{schema.Recorded.String()}
	for _, v := range schema.REST() {
		list = append(list, v.String())
	}
	return list
}

// RecordOptions is what records say of a cluster.
func RecordOptions(cluster string) *report.RecordOptions {
	return &report.RecordOptions{Cluster: cluster, Group: GroupName}
}

// JobsDocument is a listing of jobs. They are converted while it is written: there may be many.
func JobsDocument(list []client.Job, o *report.RecordOptions, now time.Time) *schema.Record {
	jobs := iter.Seq[*schema.Record](func(yield func(*schema.Record) bool) {
		for i := range list {
			if !yield(report.JobRecord(&list[i], o)) {
				return
			}
		}
	})
	return schema.New("openapi_job_info_resp").Set("jobs", jobs).Set("last_update", schema.Int(now.Unix())).
		Set("last_backfill", schema.Int(now.Unix()))
}

// NodesDocument is a listing of nodes.
func NodesDocument(list []client.Node, o *report.RecordOptions, now time.Time) *schema.Record {
	nodes := make([]*schema.Record, 0, len(list))
	for i := range list {
		nodes = append(nodes, report.NodeRecord(&list[i], o))
	}
	return schema.New("openapi_nodes_resp").Set("nodes", nodes).Set("last_update", schema.Int(now.Unix()))
}

// Print prints an answer. database says that it is one of accounting.
func (d *DocumentForm) Print(out io.Writer, body *schema.Record, cluster string, database bool) int {
	doc := schema.Document{Version: d.Version, Body: body, Meta: schema.Meta{
		Plugin: "openapi/slurmctld", PluginName: "Slurm OpenAPI slurmctld", Accounting: "accounting_storage/slurmdbd",
		Command: d.command, Release: d.release, Cluster: cluster,
	}}
	if database {
		doc.Meta.Plugin, doc.Meta.PluginName = "openapi/slurmdbd", "Slurm OpenAPI slurmdbd"
	}
	if d.Version == schema.Recorded {
		doc.Meta.Plugin, doc.Meta.PluginName = "openapi/v0.0.38", "Slurm OpenAPI v0.0.38"
		if database {
			doc.Meta.Plugin, doc.Meta.PluginName = "openapi/dbv0.0.38", "Slurm OpenAPI DB v0.0.38"
		}
	}
	if d.yaml {
		y := &schema.YAML{}
		doc.Write(y)
		return written(out, y.Out)
	}
	j := &schema.JSON{Indent: true}
	doc.Write(j)
	return written(out, append(j.Out, '\n'))
}

func written(out io.Writer, text []byte) int {
	if _, err := out.Write(plain.JSON(text)); err != nil {
		return slurm.ExitError
	}
	return 0
}
