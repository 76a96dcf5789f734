package server_test

import (
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/server/servertest"
)

func idText(id core.JobID) string { return strconv.FormatInt(int64(id), 10) }

func codesText(codes []core.Code) string {
	var w []string
	for _, c := range codes {
		if c == "" {
			c = "-"
		}
		w = append(w, string(c))
	}
	return strings.Join(w, " ")
}

func nodeState(s *servertest.Server, name string) string {
	var n client.Node
	s.Must("GET", "/api/v1/nodes/"+name, nil, &n)
	return n.State
}
