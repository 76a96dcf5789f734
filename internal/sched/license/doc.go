// Package license counts licenses: how many there are, which jobs hold them, and what reservations have of them.
package license
