package api

import (
	"net/http"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
)

func (a *Nodes) changePartition(_ http.ResponseWriter, r *http.Request, who *caller) (any, error) {
	var in client.PartitionChange
	if err := decode(r, &in); err != nil {
		return nil, err
	}
	if err := a.Partition(r.Context(), who.Identity, core.PartitionName(r.PathValue("name")), &in); err != nil {
		return nil, err
	}
	return okBody{}, nil
}

func (a *Nodes) dropPartition(_ http.ResponseWriter, r *http.Request, who *caller) (any, error) {
	if err := a.Partition(r.Context(), who.Identity, core.PartitionName(r.PathValue("name")), nil); err != nil {
		return nil, err
	}
	return okBody{}, nil
}
