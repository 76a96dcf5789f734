package config

import (
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/grammar"
)

// Additions are Bireme's own keys of a run, with the grammars of the Slurm options of the same name.
type Additions struct {
	Array        *grammar.Array
	Dependencies Dependencies // key depends_on
	Partition    string       // one name, or several separated by commas
	QOS          string
	Account      string          // the project that pays; "": the one of the call
	Time         core.Seconds    // limit of the whole job; 0: none given, core.Forever: none wanted
	Deadline     string          // a moment, see Moment
	Begin        string          // a moment, see Moment
	Constraint   core.Constraint // features of nodes
	Switches     core.SwitchLimit
	Requeue      *bool // start again after a node failed; nil: as retry says
	Checkpoint   *Checkpoint
	Runtime      string // core.RuntimeProcess, core.RuntimeContainer; "": by the image, else the project's
}

// Dependencies is what a run waits for.
type Dependencies struct {
	Any  bool // one of them is enough
	List []Dependency
}

// Dependency is a job or a run to wait for.
type Dependency struct {
	When core.NeedKind
	Job  string // a number, with _TASK and +MINUTES as in Slurm's grammar; "": Run says
	Run  string // name of a run of the project; "": of a singleton
}

// Text writes dependencies in Slurm's grammar. number gives the job of a run by its name.
func (d *Dependencies) Text(number func(run string) (string, error)) (string, error) {
	sep, out := ",", ""
	if d.Any {
		sep = "?"
	}
	for i, x := range d.List {
		if i > 0 {
			out += sep
		}
		out += string(x.When)
		job := x.Job
		if x.Run != "" {
			var err error
			if job, err = number(x.Run); err != nil {
				return "", err
			}
		}
		if job != "" {
			out += ":" + job
		}
	}
	return out, nil
}

// Checkpoint is how a job is told to save its state before it is preempted or its time ends, and how it says that it
// has.
type Checkpoint struct {
	Signal    int          // sent to save
	Grace     core.Seconds // from the signal to the end; 0: the cluster's
	SavedFile string       // its time of change is when state was last saved; "": the job calls `bireme checkpoint`
}

// Moment reads Begin or Deadline: as --begin reads it, or RFC 3339 with a zone. Incomplete ones are completed from now,
// in its zone. An empty text is 0.
func Moment(text string, now time.Time) (core.Time, error) {
	if text == "" {
		return 0, nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		if t, err = grammar.ParseMoment(text, now, grammar.Upcoming); err != nil {
			return 0, err
		}
	}
	return core.At(t), nil
}

// IsZero reports whether no addition was written.
func (a *Additions) IsZero() bool { return len(a.tags()) == 0 }
