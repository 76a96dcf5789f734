// Package code has what a run does to find its repository: the lines of shell that clone it before the commands, and
// the variables by which they have access to it. Files and changes that were uploaded come with the launch, as a parcel
// (package parcel).
//
// Git is the image's own, or the node's for a run without a container. What opens a private repository is in the
// environment of these lines alone: they take it out before the commands begin.
package code
