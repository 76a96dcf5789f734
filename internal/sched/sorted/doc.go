// Package sorted is a sorted list in chunks of a few hundred items: insertion and removal move little memory, and a
// walk in order is a walk over slices. Queues of pending jobs and the ends of running ones are such lists. There is a
// heap, too.
package sorted
