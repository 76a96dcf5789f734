package schema

import (
	"strconv"
	"strings"
)

// Document is an answer: a record, and what heads or follows every one.
type Document struct {
	Version  Version
	Body     *Record // its fields are those of the answer
	Meta     Meta
	Errors   []Problem
	Warnings []Note
}

// Meta says who answers whom.
type Meta struct {
	Plugin, PluginName string // "openapi/slurmctld", or the database's
	DataParser         string // with flags; empty: the version
	Accounting         string
	Source             string // of a REST call: how it came
	User, Group        string
	Command            []string // of a command: its words
	Release, Cluster   string
}

// Problem is an error in Slurm's numbers and words.
type Problem struct {
	Number      int
	Error       string // Slurm's words for the number
	Description string // the same for people, with the cause
	Source      string
}

// Write writes the document.
func (d *Document) Write(w Writer) {
	w.BeginObject()
	if d.Version == Recorded {
		d.writeOldHead(w)
	}
	if d.Body != nil {
		d.Body.writeFields(w, d.Version)
	}
	if d.Version != Recorded {
		w.Key("meta")
		d.Meta.record(d.Version).Write(w, d.Version)
		w.Key("errors")
		w.BeginArray()
		for _, p := range d.Errors {
			New("openapi_error").Set("description", p.Description).Set("error_number", p.Number).Set("error", p.Error).
				Set("source", p.Source).Write(w, d.Version)
		}
		w.EndArray()
		w.Key("warnings")
		w.BeginArray()
		for _, n := range d.Warnings {
			New("openapi_warning").Set("description", n.Text).Set("source", n.Path).Write(w, d.Version)
		}
		w.EndArray()
	}
	w.EndObject()
}

func (m *Meta) record(v Version) *Record {
	parser := m.DataParser
	if parser == "" {
		parser = "data_parser/" + v.String()
	}
	major, minor, micro := m.release()
	return New("openapi_meta").
		Set("plugin", New("openapi_meta_plugin").Set("type", m.Plugin).Set("name", m.PluginName).
			Set("data_parser", parser).Set("accounting_storage", m.Accounting)).
		Set("client", New("openapi_meta_client").Set("source", m.Source).Set("user", m.User).Set("group", m.Group)).
		Set("command", m.Command).
		Set("slurm", New("openapi_meta_slurm").Set("version", New("openapi_meta_slurm_version").Set("major", major).
			Set("minor", minor).Set("micro", micro)).Set("release", m.Release).Set("cluster", m.Cluster))
}

// release is the release in its three numbers.
func (m *Meta) release() (major, minor, micro string) {
	words := append(strings.SplitN(m.Release, ".", 3), "", "", "")
	return words[0], words[1], words[2]
}

// writeOldHead is what the commands of Slurm 22.05 begin with.
func (d *Document) writeOldHead(w Writer) {
	w.Key("meta")
	w.BeginObject()
	w.Key("plugin")
	w.BeginObject()
	w.Key("type")
	w.String(d.Meta.Plugin)
	w.Key("name")
	w.String(d.Meta.PluginName)
	w.EndObject()
	w.Key("Slurm")
	w.BeginObject()
	w.Key("version")
	w.BeginObject()
	major, minor, micro := d.Meta.release()
	for _, part := range [][2]string{{"major", major}, {"micro", micro}, {"minor", minor}} {
		w.Key(part[0])
		n, err := strconv.ParseInt(part[1], 10, 64)
		if err != nil {
			n = 0
		}
		w.Int(n)
	}
	w.EndObject()
	w.Key("release")
	w.String(d.Meta.Release)
	w.EndObject()
	w.EndObject()
	w.Key("errors")
	w.BeginArray()
	w.EndArray()
}
