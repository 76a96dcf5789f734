package sshare

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/slurm/report/table"
)

// row is a row of sshare.
type row struct {
	*client.Share
	Depth   int // in the tree of accounts
	ID      int
	Cluster string
}

// isRoot reports whether the row is the account above all others, which has no shares of anything.
func (r *row) isRoot() bool { return r.Project == "root" && r.User == "" }

func sixDecimals(n float64) string { return strconv.FormatFloat(n, 'f', 6, 64) }

// unlessRoot is a figure that the root has not.
func unlessRoot(value func(r *row) string) func(r *row) string {
	return func(r *row) string {
		if r.isRoot() {
			return ""
		}
		return value(r)
	}
}

// tresIDs are the resources in the order of their ids; others follow by name.
var tresIDs = []string{"cpu", "mem", "energy", "node", "billing", "fs/disk", "vmem", "pages"}

// tresByID writes amounts in the order of ids; with all also those that are zero.
func tresByID(t core.TRES, all bool) string {
	var words []string
	for _, name := range tresIDs {
		if n, ok := t.Get(name); ok || all {
			words = append(words, fmt.Sprintf("%s=%d", name, n))
		}
	}
	for _, a := range t {
		if !slices.Contains(tresIDs, a.Name) {
			words = append(words, fmt.Sprintf("%s=%d", a.Name, a.Count))
		}
	}
	return strings.Join(words, ",")
}

// fields are the columns of sshare.
var fields = []table.Field[row]{
	{Name: "Account", Width: -20, Value: func(r *row) string {
		return strings.Repeat(" ", r.Depth) + string(r.Project)
	}},
	{Name: "Cluster", Width: 10, Value: func(r *row) string { return r.Cluster }},
	{Name: "EffectvUsage", Width: 13, Value: func(r *row) string {
		if r.isRoot() {
			return "1.000000"
		}
		return sixDecimals(r.Effective)
	}},
	{Name: "FairShare", Width: 10, Value: func(r *row) string {
		if r.User == "" {
			return ""
		}
		return sixDecimals(r.Factor)
	}},
	{Name: "GrpTRESMins", Width: 30, Value: func(r *row) string { return tresByID(r.GrpTRESMins, false) }},
	{Name: "GrpTRESRaw", Width: 30, Value: func(r *row) string { return tresByID(r.UsageTRES, true) }},
	{Name: "ID", Width: 6, Value: func(r *row) string { return strconv.Itoa(r.ID) }},
	{Name: "LevelFS", Width: 10, Value: unlessRoot(func(r *row) string {
		if r.Level < 0 || math.IsInf(r.Level, 0) {
			return "inf"
		}
		return sixDecimals(r.Level)
	})},
	{Name: "NormShares", Width: 11, Value: func(r *row) string {
		if r.isRoot() {
			return "0.000000"
		}
		return sixDecimals(r.Norm)
	}},
	{Name: "NormUsage", Width: 11, Value: unlessRoot(func(r *row) string { return sixDecimals(r.NormUsage) })},
	{Name: "Partition", Width: 12, Value: func(*row) string { return "" }},
	{Name: "RawShares", Width: 10, Value: unlessRoot(func(r *row) string {
		if r.Shares == core.SharesParent {
			return "parent"
		}
		return strconv.FormatInt(r.Shares, 10)
	})},
	{Name: "RawUsage", Width: 11, Value: func(r *row) string { return strconv.FormatFloat(r.Usage, 'f', 0, 64) }},
	{Name: "TRESRunMins", Width: 30, Value: func(r *row) string { return tresByID(r.RunTRES, true) }},
	{Name: "User", Width: 10, Value: func(r *row) string { return string(r.User) }},
}
