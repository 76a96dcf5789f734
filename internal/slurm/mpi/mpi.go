// Package mpi has the kinds of --mpi.
package mpi

import "slices"

// pmixKinds are the names by which PMIx is asked for: the protocol of all these releases is served by one server.
var pmixKinds = []string{"pmix", "pmix_v3", "pmix_v4", "pmix_v5"}

// IsPMIx reports whether a value of --mpi means PMIx.
func IsPMIx(kind string) bool { return slices.Contains(pmixKinds, kind) }

// Known reports whether a value of --mpi is one that is served; empty is what the site says.
func Known(kind string) bool {
	return kind == "" || kind == "none" || kind == "pmi2" || IsPMIx(kind)
}

// List is what --mpi=list prints. Nodes need nothing for any of them.
const List = "MPI plugin types are...\n\tpmix\n\tnone\n\tpmi2\n" +
	"specific pmix plugin versions available: pmix_v3,pmix_v4,pmix_v5\n"
