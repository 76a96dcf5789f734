// Package cluster keeps the nodes and the running jobs of a planner between passes, so that a pass looks only at what
// changed: which nodes have something free, on which something came free or changed, and when jobs end.
package cluster
