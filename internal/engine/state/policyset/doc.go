// Package policyset holds a policy, which is every QOS and the tree of projects with their members, as one value:
// checks that it is sound, lists what differs from another one, and finds limits that are below what already runs.
package policyset
