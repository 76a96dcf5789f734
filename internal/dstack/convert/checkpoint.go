package convert

import (
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/grammar"
	"bireme.dev/bireme/internal/dstack/config"
)

// checkpointLead is how long before the limit a signal is sent where no grace is written, as by --signal.
const checkpointLead core.Seconds = 60

// checkpoint has a run told to save its state: by a signal to all of its processes before its time ends, and by a
// longer grace between the request to stop and the end.
func (b *builder) checkpoint(c *config.Checkpoint, x *core.Extra) error {
	lead := c.Grace
	if lead == 0 {
		lead = checkpointLead
	}
	if c.Signal > 0 {
		x.Signal = &core.WarnSignal{Signal: int32(c.Signal), Before: lead, All: true}
	}
	x.KillGrace = max(x.KillGrace, c.Grace)
	if c.SavedFile != "" && b.contains {
		return refuse("checkpoint.saved_file: only runs of processes can say so when they saved; leave it out, or write " +
			"runtime: process")
	}
	return nil
}

// checkpointScript is what a script of processes begins with: its shell outlives the signal, and a watcher that is no
// child of the shell says that the state was saved whenever the file changes. It ends with the shell.
func checkpointScript(c *config.Checkpoint) string {
	if c == nil {
		return ""
	}
	out := ""
	if c.Signal > 0 {
		out = "trap : " + grammar.SignalName(c.Signal) + "\n"
	}
	if c.SavedFile == "" {
		return out
	}
	return out + "( (\n\tseen=\n\twhile sleep 5 && kill -0 $$; do\n\t\tat=$(stat -c %Y -- " +
		config.QuoteWord(c.SavedFile) + ") || continue\n" +
		"\t\t[ \"$at\" = \"$seen\" ] || \"${BIREME_EXE:-bireme}\" checkpoint && seen=$at\n" +
		"\tdone\n) </dev/null >/dev/null 2>&1 & )\n"
}
