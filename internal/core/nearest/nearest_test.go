package nearest

import "testing"

func TestWord(t *testing.T) {
	t.Parallel()
	known := []string{"qos", "mem", "time", "partition", "ntasks"}
	for got, want := range map[string]string{
		"foo": "", "mam": "mem", "tiem": "time", "TIM": "time", "partion": "partition", "ntask": "ntasks", "p": "",
		"par":      "partition",
		"nonsense": "",
	} {
		if w := Word(got, known); w != want {
			t.Errorf("%q: %q, want %q", got, w, want)
		}
	}
}
