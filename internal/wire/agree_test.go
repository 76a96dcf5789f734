package wire

import "testing"

// Ends of neighboring releases agree on the newest version that both speak; those further apart are told to update.
func TestAgree(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		oldest, newest, ourOldest, ourNewest, want int
	}{
		"same":                  {1, 1, 1, 1, 1},
		"says one version only": {0, 1, 1, 2, 1},
		"newer other end":       {1, 2, 1, 1, 1},
		"older other end":       {1, 1, 1, 2, 1},
		"both know two":         {1, 2, 1, 2, 2},
		"overlap":               {2, 3, 1, 2, 2},
		"other too new":         {2, 3, 1, 1, 0},
		"other too old":         {1, 1, 2, 3, 0},
		"one version, too new":  {0, 2, 1, 1, 0},
		"nothing said":          {0, 0, 1, 1, 0},
		"backwards":             {5, 1, 1, 5, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := agree(tc.oldest, tc.newest, tc.ourOldest, tc.ourNewest)
			if got != tc.want || (err == nil) != (tc.want > 0) {
				t.Errorf("agreed on %d, %v; want %d", got, err, tc.want)
			}
		})
	}
}
