// Package cluster starts real standalone clusters from the built programs for tests, breaks them, and proves that
// nothing of them is left.
//
// A Cluster lives in a directory of its own below /tmp (a socket's path may not be long), which other users can enter.
// Tests drive it as people do: by commands, as root or as another user, and by the API. They wait for states with
// Eventually, never for a time. Close, which Start registers, stops the cluster and fails the test when a process, a
// cgroup, a mount or a temporary directory outlived it.
package cluster
