// Package people answers dstack's calls on users, projects and their members. A project is the account of that name,
// and a user is the same user that Slurm's commands know.
package people
