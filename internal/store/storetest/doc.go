// Package storetest states the meaning of every method of store.Store. Both engines must pass Run.
package storetest
