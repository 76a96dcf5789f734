// Package simulate is `bireme simulate`: a trace or a recording of a server, run through the scheduler on a virtual
// clock.
package simulate
