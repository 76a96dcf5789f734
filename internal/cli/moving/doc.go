// Package moving is the native commands that bring files and people of other systems here: convert and import.
package moving
