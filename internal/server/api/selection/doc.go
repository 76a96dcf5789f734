// Package selection reads which jobs a request means: references (12, 12_3, 12_[1-4], 12+1) and filters by user,
// state, node, time and more. It bounds what one request may name before anything is expanded, and matches jobs
// against it.
package selection
