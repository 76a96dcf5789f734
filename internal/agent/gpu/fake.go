package gpu

import (
	"fmt"
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/grammar"
)

// Fake makes devices that are not there, for sites that try things out: A100:80GB:8. They have no device files, and
// their vendor says what they are.
func Fake(spec string) (List, error) {
	g, err := grammar.ParseGPU(spec)
	if err != nil {
		return nil, err
	}
	if len(g.Names) != 1 || g.Count.Min == nil || *g.Count.Min < 1 || *g.Count.Min > 64 {
		return nil, core.Errorf(core.Invalid, "fake GPUs %q: want one name and how many, 1 to 64, such as A100:80GB:8", spec)
	}
	var memory core.Bytes
	if g.Memory != nil && g.Memory.Min != nil {
		memory = core.Bytes(*g.Memory.Min * float64(core.GiB))
	}
	var list List
	for n := range *g.Count.Min {
		list = append(list, Device{
			Vendor: "fake", Name: "Fake " + g.Names[0], Model: strings.ToLower(g.Names[0]),
			UUID: fmt.Sprintf("FAKE-GPU-%d", n), Memory: memory,
			Visible: fmt.Sprint(n),
		})
	}
	return list, nil
}
