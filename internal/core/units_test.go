package core

import (
	"slices"
	"testing"
	"time"
)

func TestUnitsAreNumberedOverAllTypesOfAName(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		hw   Hardware
		want [][]int32
	}{
		"nothing is known": {
			Hardware{Gres: []Gres{{"gpu", "a100", 2}, {"nic", "", 2}, {"gpu", "t4", 1}}},
			[][]int32{{0, 1}, {0, 1}, {2}},
		},
		"models lie between others": {
			Hardware{Gres: []Gres{{"gpu", "a100", 2}, {"gpu", "t4", 1}}, Units: []Unit{
				{Name: "gpu", Type: "a100"},
				{Name: "gpu", Type: "t4", Index: 1},
				{Name: "gpu", Type: "a100", Index: 2},
			}}, [][]int32{{0, 2}, {1}},
		},
		"some are described": {Hardware{
			Gres:  []Gres{{"gpu", "a100", 2}, {"gpu", "t4", 2}},
			Units: []Unit{{Name: "gpu", Type: "t4", Index: 1}},
		}, [][]int32{{0, 2}, {1, 3}}},
		"listed in two parts": {
			Hardware{Gres: []Gres{{"gpu", "a100", 1}, {"gpu", "", 1}, {"gpu", "a100", 1}}},
			[][]int32{{0, 2}, {1}},
		},
		"more are described": {Hardware{
			Gres:  []Gres{{"gpu", "", 1}},
			Units: []Unit{{Name: "gpu"}, {Name: "gpu", Index: 1}},
		}, [][]int32{{0}}},
	} {
		kinds := tc.hw.Kinds()
		for i, k := range kinds {
			if !slices.Equal(k.Index, tc.want[i]) {
				t.Errorf("%s: %s:%s are %v, want %v", name, k.Name, k.Type, k.Index, tc.want[i])
			}
		}
		if len(kinds) != len(tc.want) {
			t.Errorf("%s: %d kinds, want %d", name, len(kinds), len(tc.want))
		}
	}
}

func TestTimeSubDoesNotWrap(t *testing.T) {
	t.Parallel()
	now, far := At(time.Unix(1_700_000_000, 0)), Time(253_402_300_799*1_000_000) // the end of year 9999
	if d := far.Sub(now); d < 292*365*24*time.Hour {
		t.Errorf("the end of year 9999 is %v away", d)
	}
	if d := now.Sub(far); d > -292*365*24*time.Hour {
		t.Errorf("from the end of year 9999 to now it is %v", d)
	}
	if d := (now + 5).Sub(now); d != 5*time.Microsecond {
		t.Errorf("five microseconds are %v", d)
	}
}
