package app

import (
	"errors"
	"fmt"
	"testing"

	"bireme.dev/bireme/internal/core"
)

func TestExitCodes(t *testing.T) {
	t.Parallel()
	for code, want := range map[core.Code]int{
		core.Invalid: 2, core.TooLarge: 2, core.NotFound: 3, core.Gone: 3, core.Denied: 4, core.Unknown: 4,
		core.Unavailable: 5, core.Exhausted: 5, core.Conflict: 6, core.Internal: 1,
	} {
		if got := ExitCode(fmt.Errorf("doing: %w", core.Errorf(code, "x"))); got != want {
			t.Errorf("%s: exit status %d, want %d", code, got, want)
		}
	}
	if got := ExitCode(errors.Join(core.Errorf(core.NotFound, "a"), core.Errorf(core.Denied, "b"))); got != ExitNotFound {
		t.Errorf("two errors: exit status %d, want that of the first", got)
	}
}

func TestCellIsSafeForTerminals(t *testing.T) {
	t.Parallel()
	if got := Cell("a\x1b[2Jb\nc\u009bd"); got != "a?[2Jb c?d" {
		t.Errorf("%q", got)
	}
}
