// Package events serves the stream of events to watchers. What was missed is read from the store, then every commit
// of the engine is passed on; an event is encoded once for all watchers.
package events
