package hub

import "testing"

// Who comes to a run by SSH sees its variables except for those that open its repository.
func TestSessionsDoNotSeeRepositoryAccess(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"A=1\x00B=2\x00": "A=1\x00B=2\x00",
		"A=1\x00BIREME_REPO_URL=u\x00BIREME_REPO_TOKEN=t\x00B=BIREME_REPO_\x00": "A=1\x00B=BIREME_REPO_\x00",
	} {
		if got := string(withoutAccess([]byte(in))); got != want {
			t.Errorf("%q: %q", in, got)
		}
	}
}
