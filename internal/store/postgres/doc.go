// Package postgres is the store's engine for clusters with more than one server.
//
// A commit travels in one round trip: all statements are sent together behind the fence and run as one transaction,
// which the database ends by itself; a fence that matches no row raises an error there, and everything is undone. A
// connection that breaks gives an error (outcome unknown, as always), and the pool makes a new one for the next call.
package postgres
