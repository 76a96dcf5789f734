package slurm

import (
	"errors"
	"strings"
	"sync"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/nearest"
	"bireme.dev/bireme/internal/slurm/getopt"
)

// values says of options whose value was refused what they take.
var values = sync.OnceValue(func() map[string]string {
	return map[string]string{
		"begin":    "--begin takes 16:00, 2026-12-24T08:00, tomorrow, now+2hours",
		"deadline": "--deadline takes 16:00, 2026-12-24T08:00, tomorrow, now+2hours",
		"distribution": "--distribution takes block, cyclic, plane=N or arbitrary, then :block, :cyclic or " +
			":fcyclic for sockets and cores",
		"exclusive":       "--exclusive takes no value, or user",
		"extra-node-info": "-B takes sockets[:cores[:threads]], each a number or *",
		"gpus":            "--gpus takes N, type:N, or several of these separated by commas",
		"gpus-per-node":   "--gpus-per-node takes N, type:N, or several of these separated by commas",
		"gpus-per-socket": "--gpus-per-socket takes N, type:N, or several of these separated by commas",
		"gpus-per-task":   "--gpus-per-task takes N, type:N, or several of these separated by commas",
		"mail-type": "--mail-type takes NONE, ALL, or a list of BEGIN, END, FAIL, REQUEUE, TIME_LIMIT, " +
			"TIME_LIMIT_90, ARRAY_TASKS and the like",
		"mem":           "--mem takes a whole number, of MiB or with K, M, G or T: 4000, 16G",
		"mem-per-cpu":   "--mem-per-cpu takes a whole number, of MiB or with K, M, G or T: 4000, 16G",
		"mem-per-gpu":   "--mem-per-gpu takes a whole number, of MiB or with K, M, G or T: 4000, 16G",
		"nodelist":      "--nodelist takes names such as n1,n[3-7], or the path of a file that holds them",
		"nodes":         "--nodes takes N or MIN-MAX",
		"open-mode":     "--open-mode takes append or truncate",
		"priority":      "--priority takes a number, or TOP",
		"signal":        "--signal takes [B:]SIGNAL[@SECONDS]: USR1@120, B:TERM",
		"time":          "--time takes minutes, M:S, H:M:S, D-H, D-H:M or D-H:M:S",
		"time-min":      "--time-min takes minutes, M:S, H:M:S, D-H, D-H:M or D-H:M:S",
		"tmp":           "--tmp takes a whole number, of MiB or with K, M, G or T: 4000, 16G",
		"tres-per-task": "--tres-per-task takes cpu=N and gres/gpu[:type]=N",
		"uid":           "--uid takes the name or number of a user that this machine knows",
	}
})

// nearOption names the option that one nobody knows may have been meant to be.
func nearOption(t Tool, err error) string {
	var e *getopt.Error
	if !errors.As(err, &e) || !strings.Contains(e.Error(), "unrecognized") {
		return ""
	}
	var known []string
	for _, o := range options() {
		if o.Tools&t != 0 {
			known = append(known, o.Long)
		}
	}
	name, _, _ := strings.Cut(strings.TrimPrefix(e.Option, "--"), "=")
	if near := nearest.Word(name, known); near != "" {
		return "did you mean --" + near + "?"
	}
	return ""
}

// ErrorHint is what the server says of an error beyond Slurm's text for it: the limit, the name, the nodes that are
// meant.
func ErrorHint(err error) string {
	var e *core.Error
	if !errors.As(err, &e) || e.Message == "" || len(toldLines(err)) > 0 {
		return ""
	}
	if text := ErrorText(err); text == e.Message || text == err.Error() || text == NotContacted {
		return ""
	}
	return e.Message
}
