package call

import (
	"context"
	"testing"
	"time"

	"bireme.dev/bireme/internal/core"
)

// TestStreamsEndWithTokens: a stream ends with the JWT that it was opened with, or with the token, whichever is first.
func TestStreamsEndWithTokens(t *testing.T) {
	t.Parallel()
	past, future := core.At(time.Now().Add(-time.Second)), core.At(time.Now().Add(time.Hour))
	for name, tc := range map[string]struct {
		who  Caller
		ends bool
	}{
		"by the JWT":     {Caller{Until: past, TokenRecord: &core.Token{Expires: future}}, true},
		"by a JWT alone": {Caller{Until: past}, true},
		"by the token":   {Caller{Until: future, TokenRecord: &core.Token{Expires: past}}, true},
		"by neither":     {Caller{Until: future, TokenRecord: &core.Token{}}, false},
	} {
		var s streamSet
		ctx, leave := s.Open(t.Context(), &tc.who, false, "")
		if tc.ends {
			<-ctx.Done()
			if why := context.Cause(ctx); why.Error() == context.Canceled.Error() {
				t.Errorf("%s: %v", name, why)
			}
		} else if ctx.Err() != nil {
			t.Errorf("%s: it has ended", name)
		}
		leave()
	}
}
