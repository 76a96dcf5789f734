// Package fleets answers dstack's calls on fleets and instances. Fleets of hosts that are reached by SSH are Bireme's
// own fleets. Nodes that belong to none appear as fleets too: each partition that a project may use is one of that
// name, which the cluster's settings make and nobody changes from here.
package fleets
