// Package replica joins connections to the ports of services' replicas on this node with connections to a server, which
// the agent dials: neither replica nor node has a port open to the network.
package replica
