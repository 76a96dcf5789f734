package main

import (
	"bytes"
	"strings"
	"testing"
)

// What was typed wrongly is named in plain words, with exit status 2.
func TestTypedWrongly(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ line, want string }{
		{"sever", `there is no command "biremed sever"; did you mean server?`},
		{"config chekc", `there is no command "biremed config chekc"; did you mean check?`},
		{"server now", `unexpected argument "now": biremed server takes only options`},
		{"stop it", `unexpected argument "it": biremed stop takes only options`},
		{"seal rotat", `there is no command "biremed seal rotat"; did you mean rotate?`},
		{"ca renew", `there is no command "biremed ca renew"; see`},
		{"ca show it", `unexpected argument "it": biremed ca show takes only options`},
		{"seal rotate now", `unexpected argument "now": biremed seal rotate takes only options`},
		{"standalone it", `unexpected argument "it": standalone takes only options`},
		{"standalone --nodes x", `--nodes "x": expected a whole number`},
		{"standalone --timeout soon", `--timeout "soon": expected a duration, such as 30s or 5m`},
		{"agent --cpus 99999999999", `--cpus "99999999999": the number is too large`},
		{"agent --stop-jobs=perhaps", `--stop-jobs "perhaps": expected true or false`},
		{"server --log-level loud", `--log-level "loud": expected debug, info, warn or error`},
		{"server --nosuch", `unknown flag: --nosuch`},
		{"config check --config /nonexistent/config.yml", `/nonexistent/config.yml`},
	} {
		var out, errs bytes.Buffer
		code := run(strings.Fields(c.line), &out, &errs)
		said := errs.String()
		if code == 0 || !strings.HasPrefix(said, "biremed: ") || !strings.Contains(said, c.want) {
			t.Errorf("biremed %s: status %d, %q, want %q", c.line, code, said, c.want)
		}
		if wrong := code != exitInvalid; wrong && !strings.Contains(c.line, "/nonexistent") {
			t.Errorf("biremed %s: status %d, want %d", c.line, code, exitInvalid)
		}
		if strings.Contains(said, "strconv") || strings.Contains(said, "arg(s)") {
			t.Errorf("biremed %s: %q is the library's text", c.line, said)
		}
	}
}
