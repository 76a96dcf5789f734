package admin

import (
	"strings"
	"testing"
)

// An answer that the audit log cannot have is refused; it would find nothing and say so in no word.
func TestAuditAnswers(t *testing.T) {
	t.Parallel()
	o := &auditOptions{answer: "deneid", limit: 1}
	if _, err := o.query(); err == nil || !strings.Contains(err.Error(), "--answer deneid: expected one of ok, denied,") ||
		!strings.Contains(err.Error(), "did you mean denied?") {
		t.Errorf("%v", err)
	}
	o.answer = "denied"
	if v, err := o.query(); err != nil || v.Get("answer") != "denied" {
		t.Errorf("%v %v", v, err)
	}
}
