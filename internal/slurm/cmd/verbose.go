package cmd

import (
	"fmt"
	"strings"

	"bireme.dev/bireme/internal/slurm"
)

// Verbose lists what was asked for, as -v does before anything can fail, and with -vv what the job inherits. It is an
// error to be told to be quiet as well.
func (w *World) Verbose(r *slurm.Request) error {
	if r.Ask.Verbose == 0 {
		return nil
	}
	if r.Ask.Quiet {
		return r.Fail(slurm.ExitError, "don't specify both --verbose (-v) and --quiet (-Q)")
	}
	for _, line := range r.Defined.Lines(r) {
		w.Infof("%s", line)
	}
	if r.Ask.Verbose < 2 {
		return nil
	}
	p := ThisProcess()
	for _, e := range slurm.LimitLines(p) {
		w.Infof("debug:  propagating %s", e)
	}
	w.Infof("debug:  propagating SLURM_PRIO_PROCESS=%d", p.Nice)
	w.Infof("debug:  propagating UMASK=%s", fmt.Sprintf("%04o", p.Umask))
	return nil
}

// CountsText writes counts of nodes as -v of srun shows them: 1(x2),4(x1).
func CountsText(list []int32) string {
	var words []string
	for i := 0; i < len(list); {
		k := i
		for k < len(list) && list[k] == list[i] {
			k++
		}
		words = append(words, fmt.Sprintf("%d(x%d)", list[i], k-i))
		i = k
	}
	return strings.Join(words, ",")
}
