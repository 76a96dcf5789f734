// Package logstore keeps jobs' output as files: DIR/<job/1000>/<job>.<attempt>.log.
//
// Writers append at an offset and learn how far the store has it, so that a repeated chunk is dropped, a gap is refused
// and a reconnecting agent continues where it stopped. Readers may follow: they wait for a notification, never for a
// timer. A log whose beginning was not worth keeping starts at a base offset, which is in a file beside it.
package logstore
