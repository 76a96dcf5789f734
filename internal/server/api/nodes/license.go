package nodes

import (
	"net/http"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/server/api/call"
)

func (a *Nodes) Licenses(http.ResponseWriter, *http.Request, *call.Caller) (any, error) {
	snap, err := a.Snapshot()
	if err != nil {
		return nil, err
	}
	out := &client.LicenseList{Licenses: []client.License{}}
	for _, l := range snap.Licenses() {
		out.Licenses = append(out.Licenses, client.License{License: l.License, Used: l.Used, Reserved: l.Reserved})
	}
	return out, nil
}
