// Package jobs has the life of a job as changes of its record: how it ends, goes back to the queue, gives up its nodes,
// its steps, and the components of a het job. An Edit is one change; what follows from it for other records is the
// function that the Editor was made with.
package jobs
