// Package intake takes the output of steps from pipes into files, within the bounds and the rate of the node.
package intake
