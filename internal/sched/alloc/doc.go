// Package alloc says in numbers what a job asks for and what it holds: the terms of an allocation, its TRES, its
// licenses and the times between which it holds them. It looks at one job at a time and knows nothing of nodes or
// queues.
package alloc
