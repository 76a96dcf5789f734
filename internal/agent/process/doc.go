// Package process finds processes by their pid files and ends them, without ever meaning another that got their number.
package process
