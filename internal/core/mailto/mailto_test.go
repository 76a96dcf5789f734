package mailto

import (
	"strings"
	"testing"

	"bireme.dev/bireme/internal/core"
)

func TestCheckMail(t *testing.T) {
	t.Parallel()
	for _, to := range []string{
		"", "ann", "ann@site.example", "a.n_n+jobs@sub.site.example", "ann@localhost", "ann,bob@x.y", "_svc@x.y",
		"a=b@x.y", "1234",
	} {
		if err := Check("ALL", to); err != nil {
			t.Errorf("%q: %v", to, err)
		}
	}
	for _, to := range []string{
		"|/bin/sh", "/etc/passwd", "-s", "-oQ/tmp", "ann bob", "ann\nBcc: all@x.y", "ann@x.y\r\nX: y", "a;b", "a`id`",
		"$(id)", "'a'", "\"a b\"@x", "a@", "@x.y", "a@-x.y",
		"a@x..y", "a@x.y.", "a!b", "a%b@x.y", ":include:/etc/passwd", "a@x@y", "ann,", ",", "ann,|sh", "a..b@x.y",
		".a@x.y", "a.@x.y", "ä@x.y", "a@ü.y", "a\x00", "~root", "+f",
		strings.Repeat("a", 65) + "@x.y", "a@" + strings.Repeat("b", 64), "a,a,a,a,a,a,a,a,a", "a@[127.0.0.1]",
		"a@x.y>", "<a@x.y>", "a(b)@x.y", "\u202eann",
	} {
		if err := Check("", to); core.CodeOf(err) != core.Invalid || core.ReasonOf(err) != "invalid_mail_user" {
			t.Errorf("%q was taken: %v", to, err)
		}
	}
	for _, types := range []string{"ALL,", "all", "BEGIN;END", "X", "END\nX"} {
		if err := Check(types, ""); core.ReasonOf(err) != "invalid_mail_type" {
			t.Errorf("%q was taken: %v", types, err)
		}
	}
}

func FuzzMailAddress(f *testing.F) {
	f.Add("ann@site.example")
	f.Fuzz(func(t *testing.T, text string) {
		if IsAddress(text) && (strings.ContainsAny(text, "|/\\;&$`'\"<>(){}[]!%:~* \t\r\n\x00,") ||
			strings.HasPrefix(text, "-") || strings.HasPrefix(text, "+")) {
			t.Fatalf("%q was taken", text)
		}
	})
}
