// Package filename expands the % symbols in the names of output files: %j, %A_%a, %N.
package filename
