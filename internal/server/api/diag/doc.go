// Package diag counts what the server does, for administrators who ask how it fares: jobs by how they went, passes of
// the planner, and calls by route and by user with the time they took. Figures count from the server's start or from
// the last reset.
package diag
