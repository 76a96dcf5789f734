package main

import (
	"os"
	"testing"

	"bireme.dev/bireme/internal/agent/adopt"
	"bireme.dev/bireme/internal/core"
)

// Only lines of account and session are answered: on a line of auth an answer would stand for a password.
func TestPAMAnswersAccountAndSessionOnly(t *testing.T) {
	t.Parallel()
	for kind, denied := range map[string]bool{
		"auth": true, "password": true, "setcred": true, "": true, "close_session": false, "account": false,
	} {
		err := admit(&adopt.Node{Dir: t.TempDir(), Proc: "/proc"}, "root", kind, nil)
		if want := denied || os.Geteuid() != 0; (core.CodeOf(err) == core.Denied) != want {
			t.Errorf("%q: %v", kind, err)
		}
	}
}
