package nodes

import (
	"net/http"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/server/api/call"
)

func (a *Nodes) ChangePartition(_ http.ResponseWriter, r *http.Request, who *call.Caller) (any, error) {
	var in client.PartitionChange
	if err := call.Decode(r, &in); err != nil {
		return nil, err
	}
	if err := a.Partition(r.Context(), who.Identity, core.PartitionName(r.PathValue("name")), &in); err != nil {
		return nil, err
	}
	return call.OK{}, nil
}

func (a *Nodes) DropPartition(_ http.ResponseWriter, r *http.Request, who *call.Caller) (any, error) {
	if err := a.Partition(r.Context(), who.Identity, core.PartitionName(r.PathValue("name")), nil); err != nil {
		return nil, err
	}
	return call.OK{}, nil
}
