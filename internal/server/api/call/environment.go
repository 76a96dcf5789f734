package call

import (
	"bytes"
	"strings"

	"bireme.dev/bireme/internal/core"
)

// CheckEnv refuses an environment of more variables than a node should have to handle, or with one that no program
// could be started with. env is KEY=VALUE, each ended by NUL.
func (a *Base) CheckEnv(env []byte) error {
	lim := &a.Settings().Limits
	if n := int64(bytes.Count(env, []byte{0})); lim.EnvVars > 0 && n > lim.EnvVars {
		return tooManyVars(n, lim.EnvVars)
	}
	if int64(lim.EnvVarSize) <= 0 || int64(len(env)) <= int64(lim.EnvVarSize) {
		return nil
	}
	for rest := env; len(rest) > 0; {
		var one []byte
		one, rest, _ = bytes.Cut(rest, []byte{0})
		if int64(len(one)) > int64(lim.EnvVarSize) {
			name, _, _ := bytes.Cut(one, []byte{'='})
			return tooLongVar(string(name), len(one), lim.EnvVarSize.String())
		}
	}
	return nil
}

// CheckEnvList is checkEnv for a list, and for its size, which is that of a job's.
func (a *Base) CheckEnvList(env []string) error {
	lim, total := &a.Settings().Limits, int64(0)
	if n := int64(len(env)); lim.EnvVars > 0 && n > lim.EnvVars {
		return tooManyVars(n, lim.EnvVars)
	}
	for _, e := range env {
		total += int64(len(e)) + 1
		if int64(lim.EnvVarSize) > 0 && int64(len(e)) > int64(lim.EnvVarSize) {
			name, _, _ := strings.Cut(e, "=")
			return tooLongVar(name, len(e), lim.EnvVarSize.String())
		}
	}
	if most := a.Settings().Jobs.MaxEnv; total > int64(most) {
		return core.Errorf(core.TooLarge, "the environment has %d bytes; the limit is %s (jobs.max_env)", total, most).
			Because("environment_too_large")
	}
	return nil
}

func tooManyVars(n, most int64) error {
	return core.Errorf(core.TooLarge, "the environment has %d variables; the limit is %d (limits.env_vars)", n, most).
		Because("environment_too_large")
}

func tooLongVar(name string, n int, most string) error {
	const shown = 64
	if len(name) > shown {
		name = name[:shown] + "…"
	}
	return core.Errorf(core.TooLarge,
		"the variable %q of the environment has %d bytes; the limit is %s (limits.env_var_size)",
		name, n, most).Because("environment_too_large")
}
