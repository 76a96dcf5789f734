package api

import (
	"net/http"

	"bireme.dev/bireme/internal/client"
)

func (a *Nodes) licenses(http.ResponseWriter, *http.Request, *caller) (any, error) {
	snap, err := a.snapshot()
	if err != nil {
		return nil, err
	}
	out := &client.LicenseList{Licenses: []client.License{}}
	for _, l := range snap.Licenses() {
		out.Licenses = append(out.Licenses, client.License{License: l.License, Used: l.Used, Reserved: l.Reserved})
	}
	return out, nil
}
