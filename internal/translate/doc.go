// Package translate turns the files of one front end into those of the other: a batch script into a YAML configuration
// (Script), a configuration into a batch script (Configuration), and a site's slurm.conf into settings, fleets and
// projects (Site). Everything here is pure.
//
//	#SBATCH lines ── slurm.Directives ─► optionRules ─► keys of a task ──► YAML    (script.go, options.go, request.go)
//	YAML ── config.Read ─► keyRules ─► options and commands ─────────────► script  (task.go, keys.go)
//
// What one side has and the other has not is a Note, and stays in the output as a comment: options as #SBATCH lines
// of the YAML, keys as #BIREME lines of the script. The way back takes them from there, so that both ways together
// change nothing. Lines that only the conversion needs carry the mark "#:" and are dropped by the way back.
package translate
