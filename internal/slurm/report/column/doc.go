// Package column writes listings of columns as squeue, sinfo and sprio do: a table of fields, formats that choose
// among them, and lines of fitted values.
package column
