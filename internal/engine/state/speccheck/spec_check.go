package speccheck

import (
	"fmt"
	"slices"
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/mailto"
	"bireme.dev/bireme/internal/core/plain"
	"bireme.dev/bireme/internal/core/storage"
	"bireme.dev/bireme/internal/sched/fit"
)

// maxSpecText bounds the texts of one spec taken together: it stays in memory for the job's life.
const maxSpecText = 64 << 10

// MaxKeyText bounds a submit key with its user's name.
const MaxKeyText = 1024

// MaxSeconds and maxMoment keep sums of times far from overflow: 2^31 minutes, the longest that Slurm can say, and the
// end of the year 9999.
const (
	MaxSeconds = 60 << 31
	MaxMoment  = 253_402_300_799 * 1_000_000
)

// maxMemory is more than any node has; maxCPUs more than any cluster.
const (
	maxMemory = 1 << 50
	maxCPUs   = 1 << 30
)

// textField is a text that a client sends, of at most so many bytes.
type textField[T any] struct {
	path     string
	maxBytes int
	get      func(*T) string
}

// numberField is a number that a client sends, from lo to hi; also is one more value that means something.
type numberField[T any] struct {
	path         string
	lo, hi, also int64
	get          func(*T) int64
}

// listField is a list or a map that a client sends: check refuses it, and says how many bytes of text it has.
type listField[T any] struct {
	path  string
	check func(*T) (size int, err error)
}

// engineField is one that the engine sets: a submission that has it set is refused.
type engineField[T any] struct {
	path string
	set  func(*T) bool
}

// fieldTable is all fields of one part of a spec.
type fieldTable[T any] struct {
	texts   []textField[T]
	numbers []numberField[T]
	lists   []listField[T]
	engine  []engineField[T]
	// flags are true or false, which both mean something; assigned are overwritten by the server whatever a client says;
	// elsewhere are numbers that the function named checks with words of its own.
	flags     []string
	assigned  []string
	checkedBy map[string]string
}

func Invalid(path, format string, args ...any) error {
	return core.Errorf(core.Invalid, "%s: %s", path, fmt.Sprintf(format, args...)).Because("invalid_field")
}

func TooLong(path string, size, most int) error {
	return core.Errorf(core.TooLarge, "%s has %d bytes; the limit is %d", path, size, most).Because("field_too_long")
}

// checkTexts refuses texts and lists that are too long, and adds up what they have.
func (t *fieldTable[T]) checkTexts(v *T, size *int) error {
	for i := range t.texts {
		f := &t.texts[i]
		text := f.get(v)
		n := len(text)
		if n == 0 { // most of them
			continue
		}
		if n > f.maxBytes {
			return TooLong(f.path, n, f.maxBytes)
		}
		if !plain.Is(text) {
			if err := notPlain(f.path, text); err != nil {
				return err
			}
		}
		*size += n
	}
	for i := range t.lists {
		n, err := t.lists[i].check(v)
		if err != nil {
			return err
		}
		*size += n
	}
	return nil
}

// notPlain refuses a text that is not plain, unless its field may hold any byte but NUL.
func notPlain(path, text string) error {
	switch {
	case strings.IndexByte(text, 0) >= 0:
		return Invalid(path, "must not contain a NUL byte")
	case !rawTexts[path]:
		return Invalid(path,
			"%.80q holds control characters, marks that change the direction of text, or bytes that are no UTF-8", text)
	}
	return nil
}

// checkNumbers refuses numbers that mean nothing.
func (t *fieldTable[T]) checkNumbers(v *T) error {
	for i := range t.numbers {
		f := &t.numbers[i]
		if n := f.get(v); (n < f.lo || n > f.hi) && (f.also == 0 || n != f.also) {
			return Invalid(f.path, "%d is not between %d and %d", n, f.lo, f.hi)
		}
	}
	return nil
}

// checkEngineFields refuses what only the engine sets.
func (t *fieldTable[T]) checkEngineFields(v *T) error {
	for i := range t.engine {
		if f := &t.engine[i]; f.set(v) {
			return core.Errorf(core.Denied, "%s is set by the server and cannot be given",
				f.path).Because("server_field")
		}
	}
	return nil
}

// Submitted refuses what nobody may send: fields of the engine's, texts that are too long, numbers that mean
// nothing.
func Submitted(spec *core.Spec) error {
	if err := specTable.checkEngineFields(spec); err != nil {
		return err
	}
	if spec.Extra != nil {
		if err := extraTable.checkEngineFields(spec.Extra); err != nil {
			return err
		}
	}
	return Spec(spec)
}

// Spec refuses texts that are too long and numbers that mean nothing.
func Spec(spec *core.Spec) error {
	size, err := checkTexts(spec)
	if err != nil {
		return err
	}
	if size > maxSpecText {
		return core.Errorf(core.TooLarge, "the job's description has %d bytes; the limit is %d", size,
			maxSpecText).Because("request_too_large")
	}
	return Ranges(spec)
}

// TextSize is how many bytes the texts of a spec have that was checked.
func TextSize(spec *core.Spec) int {
	size, _ := checkTexts(spec)
	return size
}

func checkTexts(spec *core.Spec) (size int, err error) {
	if err := specTable.checkTexts(spec, &size); err != nil {
		return size, err
	}
	if spec.Shape.More != nil {
		if err := shapeMoreTable.checkTexts(spec.Shape.More, &size); err != nil {
			return size, err
		}
	}
	if x := spec.Extra; x != nil {
		if err := extraTable.checkTexts(x, &size); err != nil {
			return size, err
		}
		if err := mailto.Check(x.MailTypes, x.MailUser); err != nil {
			return size, err
		}
		if x.Container != nil {
			if err := containerTable.checkTexts(x.Container, &size); err != nil {
				return size, err
			}
		}
		if x.GPU != nil {
			if err := gpuTable.checkTexts(x.GPU, &size); err != nil {
				return size, err
			}
		}
		if x.Rules != nil {
			if err := rulesTable.checkTexts(x.Rules, &size); err != nil {
				return size, err
			}
			if err := checkRules(x.Rules); err != nil {
				return size, err
			}
		}
	}
	return size, nil
}

// Ranges refuses numbers that mean nothing, also in records that come from the store.
func Ranges(spec *core.Spec) error {
	if err := specTable.checkNumbers(spec); err != nil {
		return err
	}
	if m := spec.Shape.More; m != nil {
		if err := shapeMoreTable.checkNumbers(m); err != nil {
			return err
		}
	}
	if x := spec.Extra; x != nil {
		if err := extraTable.checkNumbers(x); err != nil {
			return err
		}
		if x.Container != nil {
			if err := containerTable.checkNumbers(x.Container); err != nil {
				return err
			}
		}
		if x.GPU != nil {
			if err := gpuTable.checkNumbers(x.GPU); err != nil {
				return err
			}
		}
		if x.Signal != nil {
			if err := signalTable.checkNumbers(x.Signal); err != nil {
				return err
			}
		}
		if x.Rules != nil {
			if err := checkRulesRanges(x.Rules); err != nil {
				return err
			}
		}
	}
	return checkTotals(&spec.Shape)
}

// checkTotals refuses memory that no node has, and products of a shape's numbers that are beyond any cluster: what is
// worked out from them stays an int64.
func checkTotals(sh *core.Shape) error {
	tasks, each, perNode := float64(max(1, sh.Tasks)), float64(max(1, sh.CPUsPerTask)), float64(max(1, sh.TasksPerNode))
	if tasks*each > maxCPUs || perNode*each > maxCPUs {
		return core.Errorf(core.Invalid, "the job requests more than %d CPUs", maxCPUs).Because("too_many_cpus")
	}
	most := max(each, float64(sh.MinCPUs), perNode*each)
	if sh.MemPerCPU < 0 || sh.MemPerNode < 0 && sh.MemPerNode != fit.AllMemory {
		return core.Errorf(core.Invalid, "memory must not be negative").Because("invalid_shape")
	}
	if sh.MemPerNode > maxMemory || float64(sh.MemPerCPU)*most > maxMemory || float64(sh.MemPerCPU)*tasks*each > 1<<62 {
		return core.Errorf(core.Invalid, "the job requests more than %d MiB of memory on a node",
			maxMemory/core.MiB).Because("memory_unsatisfiable")
	}
	return nil
}

// gresNameForbidden are characters that no name of a generic resource has.
const gresNameForbidden = ":;,=()[] \t\r\n\x00"

// checkGresList checks a list of generic resources; how many of each is checkShape's matter.
func checkGresList(path string, list []core.Gres) (size int, err error) {
	if len(list) > maxGresKinds {
		return 0, Invalid(path, "%d kinds of resources; the limit is %d", len(list), maxGresKinds)
	}
	for i := range list {
		g := &list[i]
		if len(g.Name) > maxWord || len(g.Type) > maxWord {
			return 0, TooLong(path, max(len(g.Name), len(g.Type)), maxWord)
		}
		// keys of requests are made of them
		if strings.ContainsAny(g.Name, gresNameForbidden) || strings.ContainsAny(g.Type, gresNameForbidden) {
			return 0, core.Errorf(core.Invalid, "%.80q, type %.80q: not the name of a generic resource", g.Name,
				g.Type).Because("invalid_gres")
		}
		if g.Count < 0 || g.Count > maxGres {
			return 0, core.Errorf(core.Invalid, "gres %[2]q: %[1]d is not a valid count", g.Count,
				g.Name).Because("invalid_gres")
		}
		size += len(g.Name) + len(g.Type) + 24
	}
	return size, nil
}

// checkTextList checks a list of texts.
func checkTextList(path string, list []string, count, each int) (size int, err error) {
	if len(list) > count {
		return 0, Invalid(path, "%d entries; the limit is %d", len(list), count)
	}
	for _, s := range list {
		if len(s) > each {
			return 0, TooLong(path, len(s), each)
		}
		size += len(s) + 16
	}
	return size, nil
}

// checkOptions checks the options that are kept as they were written.
func checkOptions(options map[string]string) (size int, err error) {
	if len(options) > maxOptions {
		return 0, Invalid("extra.options", "%d entries; the limit is %d", len(options), maxOptions)
	}
	for name, value := range options {
		switch {
		case name == "" || len(name) > maxWord ||
			strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '=' }):
			return 0, Invalid("extra.options", "%.80q is not an option name", name)
		case len(value) > MaxLine:
			return 0, TooLong("extra.options."+name, len(value), MaxLine)
		}
		size += len(name) + len(value) + 32
	}
	return size, nil
}

func checkRlimits(limits map[string]uint64) (size int, err error) {
	if len(limits) > 64 {
		return 0, Invalid("extra.rlimits", "%d entries; the limit is 64", len(limits))
	}
	for name := range limits {
		if name == "" || len(name) > maxWord {
			return 0, Invalid("extra.rlimits", "%.80q is not a limit name", name)
		}
		size += len(name) + 24
	}
	return size, nil
}

// checkVolumes bounds the volumes that a job mounts. Whether they are there, and its project's, says admission.
func checkVolumes(list []core.VolumeMount) (size int, err error) {
	if len(list) > storage.MaxMounted {
		return 0, Invalid("extra.volumes", "%d entries; the limit is %d", len(list), storage.MaxMounted)
	}
	for i := range list {
		m := &list[i]
		for _, text := range append([]string{m.Name, m.Target}, m.Others...) {
			if len(text) > maxPath {
				return 0, TooLong("extra.volumes", len(text), maxPath)
			}
			size += len(text) + 40
		}
	}
	return size, nil
}

func checkMounts(list []core.Mount) (size int, err error) {
	if len(list) > 256 {
		return 0, Invalid("extra.container.mounts", "%d entries; the limit is 256", len(list))
	}
	for i := range list {
		if n := max(len(list[i].Source), len(list[i].Target)); n > maxPath {
			return 0, TooLong("extra.container.mounts", n, maxPath)
		}
		size += len(list[i].Source) + len(list[i].Target) + 40
	}
	return size, nil
}

// addKinds notes for each field of a table how it is checked, and lists fields that were noted already.
func (t *fieldTable[T]) addKinds(kinds map[string]string) (twice []string) {
	add := func(path, kind string) {
		if _, has := kinds[path]; has {
			twice = append(twice, path)
		}
		kinds[path] = kind
	}
	for _, f := range t.texts {
		add(f.path, "text")
	}
	for _, f := range t.numbers {
		add(f.path, "number")
	}
	for _, f := range t.lists {
		add(f.path, "list")
	}
	for _, f := range t.engine {
		add(f.path, "engine")
	}
	for _, p := range t.flags {
		add(p, "flag")
	}
	for _, p := range t.assigned {
		add(p, "assigned")
	}
	for p := range t.checkedBy {
		add(p, "elsewhere")
	}
	return twice
}

// FieldKinds maps each field of a submission to how it is checked: text, number, list, engine, flag, assigned or
// elsewhere. It also lists fields that are in two tables, which is a fault.
func FieldKinds() (kinds map[string]string, twice []string) {
	kinds = map[string]string{}
	return kinds, slices.Concat(specTable.addKinds(kinds), shapeMoreTable.addKinds(kinds), extraTable.addKinds(kinds),
		signalTable.addKinds(kinds), gpuTable.addKinds(kinds), containerTable.addKinds(kinds), rulesTable.addKinds(kinds),
		retryTable.addKinds(kinds), utilizationTable.addKinds(kinds))
}
