// Package screen words runs, plans, offers and fleets for people, in the tables that dstack's users know. It is pure:
// what it shows comes from the server, and goes to whatever prints it.
package screen
