// Package window holds the bytes of an output that were sent and are not acknowledged yet.
package window
