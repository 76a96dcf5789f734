// Package attach says how clients reach a job by SSH: the user name that stands for a job at the server's SSH listener,
// and the fields of a run from which dstack clients write their ssh configuration (docs/adr/0009). It is pure.
package attach
