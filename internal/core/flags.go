package core

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/core/nearest"
)

// flagName is a flag and what Slurm calls it; also is what it may be called beside that.
type flagName[F ~uint16 | ~uint32] struct {
	flag F
	name string
	also string
}

var qosFlags = []flagName[QOSFlag]{
	{DenyOnLimit, "DenyOnLimit", ""},
	{EnforceUsageThreshold, "EnforceUsageThreshold", ""},
	{NoDecay, "NoDecay", ""},
	{OverPartQOS, "OverPartQOS", ""},
	{Relative, "Relative", ""},
	{NoReserve, "NoReserve", ""},
	{RequiresReservation, "RequiresReservation", ""},
	{PartitionMaxNodes, "PartitionMaxNodes", ""},
	{PartitionMinNodes, "PartitionMinNodes", ""},
	{PartitionTimeLimit, "PartitionTimeLimit", ""},
	{UsageFactorSafe, "UsageFactorSafe", ""},
}

// reserveFlags are in the order Slurm prints them in.
var reserveFlags = []flagName[ReserveFlag]{
	{ReserveMaint, "MAINT", ""},
	{ReserveFlex, "FLEX", ""},
	{ReserveOverlap, "OVERLAP", ""},
	{ReserveIgnoreJobs, "IGNORE_JOBS", ""},
	{ReserveHourly, "HOURLY", ""},
	{ReserveDaily, "DAILY", ""},
	{ReserveWeekday, "WEEKDAY", ""},
	{ReserveWeekend, "WEEKEND", ""},
	{ReserveWeekly, "WEEKLY", ""},
	{ReserveSpecNodes, "SPEC_NODES", ""},
	{ReserveAllNodes, "ALL_NODES", ""},
	{ReserveAnyNodes, "ANY_NODES", ""},
	{ReserveLicenseOnly, "LICENSE_ONLY", ""},
	{ReserveStatic, "STATIC", "STATIC_ALLOC"},
	{ReservePartNodes, "PART_NODES", ""},
	{ReserveReplace, "REPLACE", ""},
	{ReserveReplaceDown, "REPLACE_DOWN", ""},
	{ReservePurgeCompleted, "PURGE_COMP", "PURGE"},
	{ReserveTimeFloat, "TIME_FLOAT", ""},
	{ReserveMagnetic, "MAGNETIC", ""},
	{ReserveNoHold, "NO_HOLD_JOBS_AFTER_END", "NO_HOLD_JOBS_AFTER"},
	{ReserveForceStart, "FORCE_START", ""},
	{ReserveUserDelete, "USER_DELETE", "USER_DEL"},
}

// Words lists the flags as Slurm names them.
func (f QOSFlag) Words() []string { return flagWords(qosFlags, f) }

// Words lists the flags as Slurm names them.
func (f ReserveFlag) Words() []string { return flagWords(reserveFlags, f) }

// String joins the words with commas.
func (f QOSFlag) String() string { return strings.Join(f.Words(), ",") }

// String joins the words with commas.
func (f ReserveFlag) String() string { return strings.Join(f.Words(), ",") }

// MarshalJSON writes a list of words.
func (f QOSFlag) MarshalJSON() ([]byte, error) { return json.Marshal(f.Words()) }

// MarshalJSON writes a list of words.
func (f ReserveFlag) MarshalJSON() ([]byte, error) { return json.Marshal(f.Words()) }

// UnmarshalJSON reads a list of words, or one text of them.
func (f *QOSFlag) UnmarshalJSON(b []byte) error { return readFlags(qosFlags, b, f) }

// UnmarshalJSON reads a list of words, or one text of them.
func (f *ReserveFlag) UnmarshalJSON(b []byte) error { return readFlags(reserveFlags, b, f) }

// ParseQOSFlags reads words separated by commas, in any case.
func ParseQOSFlags(text string) (QOSFlag, error) { return parseFlags(qosFlags, text) }

// ParseReserveFlags reads words separated by commas, in any case, with _ or - or nothing between their parts.
func ParseReserveFlags(text string) (ReserveFlag, error) { return parseFlags(reserveFlags, text) }

// flagWords prints a bit without a name as its number, so that none is lost.
func flagWords[F ~uint16 | ~uint32](table []flagName[F], f F) []string {
	out := []string{}
	for _, n := range table {
		if f&n.flag != 0 {
			out = append(out, n.name)
			f &^= n.flag
		}
	}
	if f != 0 {
		out = append(out, strconv.FormatUint(uint64(f), 10))
	}
	return out
}

func readFlags[F ~uint16 | ~uint32](table []flagName[F], b []byte, f *F) error {
	var words []string
	if len(b) > 0 && b[0] == '"' {
		words = make([]string, 1)
		if err := json.Unmarshal(b, &words[0]); err != nil {
			return err
		}
	} else if err := json.Unmarshal(b, &words); err != nil {
		return err
	}
	got, err := parseFlags(table, strings.Join(words, ","))
	*f = got
	return err
}

func parseFlags[F ~uint16 | ~uint32](table []flagName[F], text string) (F, error) {
	plain := func(s string) string { return strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(s)) }
	var all F
	for word := range strings.SplitSeq(text, ",") {
		if word = strings.TrimSpace(word); word == "" {
			continue
		}
		var found F
		for _, n := range table {
			if w := plain(word); w == plain(n.name) || n.also != "" && w == plain(n.also) {
				found = n.flag
			}
		}
		if n, err := strconv.ParseUint(word, 10, 16); found == 0 && err == nil {
			found = F(n)
		}
		if found == 0 {
			names := make([]string, len(table))
			for i, n := range table {
				names[i] = n.name
			}
			return 0, fmt.Errorf("unknown flag %q%s", word, nearest.Hint(word, names))
		}
		all |= found
	}
	return all, nil
}
