package initd

import (
	"reflect"
	"strings"
	"testing"

	"bireme.dev/bireme/internal/wire"
)

// TestRanks: the last that ends well ends the job, or the first that does not.
func TestRanks(t *testing.T) {
	t.Parallel()
	well, bad := wire.RunEnded{}, wire.RunEnded{ExitCode: 3, Message: "rank 1"}
	for name, tc := range map[string]struct {
		ends []wire.RunEnded // the first is the first container's
		at   int             // which of them is the end of all
		done bool            // the first one's end is that of all
	}{
		"all well":    {[]wire.RunEnded{well, well, well}, 2, false},
		"one fails":   {[]wire.RunEnded{well, bad, well}, 1, false},
		"all fail":    {[]wire.RunEnded{bad, bad, bad}, 0, false},
		"not started": {[]wire.RunEnded{{Cause: wire.CauseLaunchFailed}, well, well}, 0, false},
		"killed":      {[]wire.RunEnded{well, well, {Signal: 9}}, 2, false},
		"master done": {[]wire.RunEnded{well, well, bad}, 0, true},
	} {
		k := &ranks{left: len(tc.ends), masterDone: tc.done}
		for i, e := range tc.ends {
			end, over := k.ended(i, e)
			ranks := end.Ranks
			end.Ranks = nil
			if over != (i == tc.at) || over && !reflect.DeepEqual(end, e) {
				t.Errorf("%s: after %d: %v %+v", name, i, over, end)
			}
			if over && e.Cause == wire.CauseNone && (len(ranks) != i+1 || int(ranks[i].Code) != e.ExitCode) {
				t.Errorf("%s: after %d the ranks are %+v", name, i, ranks)
			}
		}
	}
}

// TestGangPaths: programs find our ssh after the image's own, or before it where that could not work.
func TestGangPaths(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		openSSH bool
		path    string
		want    string
	}{
		{true, "PATH=/bin", "/bin:" + gangDir},
		{false, "PATH=/bin", gangDir + ":/bin"},
		{false, "A=b", gangDir + ":/usr/local/sbin:"},
	} {
		got := valueOf(withGang([]string{tc.path, "OMPI_MCA_plm=mine"}, gangEnv(tc.openSSH)), "PATH")
		if !strings.HasPrefix(got, tc.want) {
			t.Errorf("%v %s: %s", tc.openSSH, tc.path, got)
		}
	}
	if got := valueOf(withGang([]string{"OMPI_MCA_plm=mine"}, gangEnv(true)), "OMPI_MCA_plm"); got != "mine" {
		t.Errorf("the job's own word is not kept: %s", got)
	}
}
