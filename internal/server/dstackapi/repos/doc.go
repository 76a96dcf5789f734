// Package repos answers dstack's calls on repositories and on files that clients send ahead of a run. A repository
// belongs to a project, the access to it to one user.
package repos
