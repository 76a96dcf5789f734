// Package proxy passes the requests of services on to their replicas. It knows nothing of engine, hub or agents: the
// server and a gateway give it a table of services and a way to connect to each replica.
//
//	p := proxy.New(proxy.Config{…})
//	p.SetTable(list)                    // with every change; requests under way keep what they began with
//	p.ServePath(w, r)                   // /proxy/services/PROJECT/RUN/… and /proxy/models/PROJECT/…
//	p.Serve(w, r, service, path)        // of a service that the caller has found, as a gateway does by the host
//	p.Stats(id), p.InFlight(replica)    // for scaling, and for replicas that are to end
//
// A request goes to the ready replica that answers the fewest at the moment. One whose replica dies before the whole
// answer is here is repeated on another replica where that is safe: it has no body and a method that may be repeated,
// or no byte of it was sent. Short answers are held until they are complete, so that a replica killed in the middle of
// one fails nobody. Anything else gets one clear 502.
//
// Requests of a service without replicas that may have none are held until one is ready; Waiting counts them.
package proxy
