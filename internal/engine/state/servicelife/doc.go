// Package servicelife has the rules of a service's life: which replicas are started and which end, so that there are as
// many of the newest version as are wanted, and what the end of a replica means. It knows nothing of State.
//
//	Plan ── Start ──► a replica's job waits, runs, is found ready (a report) ── Drain ──► gets no new requests
//	                                                               drained (a report), or late
//	                                                               └── Stop ──► its job ends
//
// An update keeps as many replicas ready as are wanted: there is one more than that for a while, and an old one goes
// only when a new one is ready. A new version of which a replica fails before it was ever ready, or is not ready for
// too long, is taken back while replicas of an older one serve.
//
// A replica that ends by itself is replaced while another one is ready, with pauses that grow. The last one that fails
// ends the run, as any other run ends; its job's own retry rules come first.
package servicelife
