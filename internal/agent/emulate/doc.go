// Package emulate runs the nodes of a standalone cluster: each an agent process of its own, kept alive by a Supervisor.
//
// An emulated node has a UTS and a mount namespace, so that its host name is its own and its hosts file names all
// nodes, an address of its own on the loopback network, which all share, and cgroups of its own. Its keeper and all
// jobs live inside. A machine that allows no namespaces still runs the nodes; they then share its name and hosts file.
//
// Stopping a node is like pulling its plug: agent and keeper are killed, what ran is killed, and the node comes back
// with another boot id. What ended before is still in the keeper's journal and is told then.
package emulate
