package wire

import (
	"encoding/json"
	"slices"
	"testing"
)

func TestRanks(t *testing.T) {
	for text, want := range map[string]Ranks{
		`""`: nil, `"0"`: {0}, `"0-3,8"`: {0, 1, 2, 3, 8}, `"3,1,2"`: {3, 1, 2}, `"4,0-1"`: {4, 0, 1},
	} {
		var got Ranks
		if err := json.Unmarshal([]byte(text), &got); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for _, list := range []Ranks{{0, 1, 2}, {7, 3, 4}, {0, 2, 4, 6}, {}} {
		b, err := json.Marshal(list)
		var got Ranks
		if err == nil {
			err = json.Unmarshal(b, &got)
		}
		if err != nil || !slices.Equal(got, list) {
			t.Errorf("%v: %s, %v, %v", list, b, got, err)
		}
	}
	for _, text := range []string{`"a"`, `"3-1"`, `"0-99999999999"`, `"0-2000000000"`, `"1,,2"`, `7`} {
		if err := json.Unmarshal([]byte(text), new(Ranks)); err == nil {
			t.Errorf("%s is taken", text)
		}
	}
}

func TestFormatRanges(t *testing.T) {
	t.Parallel()
	for want, list := range map[string][]int32{"": nil, "3": {3}, "0-3,8": {0, 1, 2, 3, 8}, "1,3,5-6": {1, 3, 5, 6}} {
		if got := FormatRanges(list); got != want {
			t.Errorf("%v: %q, want %q", list, got, want)
		}
	}
}
