// Package audit writes the audit log: who asked for what, with which answer.
//
// Entries go through one bounded queue to one goroutine, which writes what has gathered in one transaction: Write waits
// until its entry is on disk, Note does not. What cannot be written is kept and tried again; when the queue is full,
// entries of Note are dropped, counted, and the log says how many. Calls that anybody can make without number
// (refusals, sign-ins, acts of ordinary users) pass through a limiter first: a minute of them makes a bounded number of
// rows, like ones told as one with a count. After an entry is in the store it is exported, to a file or to syslog, if a
// setting says so.
package audit
