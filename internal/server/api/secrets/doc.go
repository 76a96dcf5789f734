// Package secrets answers calls about the secrets of projects. Who may handle them is the same for every front end.
package secrets
