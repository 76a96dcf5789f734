// Package storage has the classes of network volumes, and the form of what users say of volumes.
package storage
