package server

import (
	"context"

	"bireme.dev/bireme/internal/core"
)

// appendAudit writes entries as the leader that this server is.
func (s *server) appendAudit(ctx context.Context, list []*core.AuditEntry) error {
	return s.store.AppendAudit(ctx, s.engine.Epoch(), list)
}

// auditReload tells of settings that were read again because of a signal.
func (s *server) auditReload(err error) {
	e := &core.AuditEntry{
		User: "root", Addr: "signal", Action: "settings.reload", Object: "settings",
		Answer: core.AuditOK, Count: 1,
	}
	if err != nil {
		e.Answer, e.Reason, e.Message = string(core.CodeOf(err)), core.ReasonOf(err), err.Error()
	}
	s.audit.Note(e)
}
