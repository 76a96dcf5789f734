package cluster

import (
	"context"
	"net/http"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/hostlist"
	"bireme.dev/bireme/internal/engine/state"
	"bireme.dev/bireme/internal/server/api/call"
)

// CAHeader names the authorities that a caller over TLS should trust, so that one who keeps a copy sees when it is old.
const CAHeader = "Bireme-Ca"

// ShowCA returns the authorities to trust; administrators also learn of nodes.
func (a *Cluster) ShowCA(_ http.ResponseWriter, _ *http.Request, who *call.Caller) (any, error) {
	snap, err := a.Snapshot()
	if err != nil {
		return nil, err
	}
	return a.caState(snap, who.Admin), nil
}

func (a *Cluster) caState(snap *state.Snapshot, admin bool) *client.CA {
	out := &client.CA{PEM: string(a.Authority.PEM()), Sum: a.Authority.Sum()}
	for _, i := range a.Authority.Issuers() {
		out.Issuers = append(out.Issuers, client.Issuer{
			Num: i.Num, Made: i.Made, Ends: i.Ends, Serial: i.Serial,
			Nodes: i.Nodes, Server: i.Servers,
		})
	}
	out.Rotating = len(out.Issuers) > 1
	if !admin {
		return out
	}
	for n := range snap.Nodes() {
		if p := n.Pin; p != nil && !p.Revoked {
			out.Nodes = append(out.Nodes, client.NodeCert{
				Name: n.Name, Ends: p.Ends, Current: p.CA == out.Sum,
				Connected: a.Hub.Live(n.Name).Connected,
			})
		}
	}
	return out
}

// RotateCA takes the next step of replacing the authority: a second one is made, and when every node trusts it the
// first one goes.
func (a *Cluster) RotateCA(_ http.ResponseWriter, r *http.Request, who *call.Caller) (any, error) {
	var in client.RotateCA
	if err := call.Decode(r, &in); err != nil {
		return nil, err
	}
	if !who.Admin {
		return nil, core.Errorf(core.Denied, "only an administrator may replace the certificate authority").
			Because("access_denied")
	}
	snap, err := a.Snapshot()
	if err != nil {
		return nil, err
	}
	// Half a step is none: what is begun is finished, whether the caller waits or not.
	ctx := context.WithoutCancel(r.Context())
	if now := a.caState(snap, true); !now.Rotating {
		err = a.Authority.Begin(ctx)
	} else {
		var behind []string
		for _, n := range now.Nodes {
			if !n.Current {
				behind = append(behind, string(n.Name))
			}
		}
		if len(behind) > 0 && !in.Force {
			return nil, core.Errorf(core.Conflict,
				"%d of %d nodes do not trust the new authority yet: %s; they learn of it as soon as their agents are connected. "+
					"With --force they are left behind, and join again", len(behind), len(now.Nodes), hostlist.Fold(behind)).
				Because("ca_rotating")
		}
		err = a.Authority.Finish(ctx)
	}
	if err != nil {
		return nil, err
	}
	if err := a.CAChanged(); err != nil {
		return nil, err
	}
	a.Log.Info("the certificate authority was changed", "by", who.User, "issuers", len(a.Authority.Issuers()))
	return a.caState(a.Engine.Snapshot(), true), nil
}
