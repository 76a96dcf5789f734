// Package site tests Bireme as docs/install.md installs it: a server with a user of its own, agents that are root, each
// a process of its own; their units; a second server; and the end of all of them.
package site
