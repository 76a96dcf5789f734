package core

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// AuditEntry is a line of the audit log: who asked for what, with which answer. Its texts hold no control characters.
type AuditEntry struct {
	Seq       int64    `json:"seq"` // without gaps
	At        Time     `json:"at"`
	User      UserName `json:"user,omitempty"` // empty: nobody we know
	UID       int64    `json:"uid"`            // -1: not known
	Node      NodeName `json:"node,omitempty"` // the call came through its socket
	Addr      string   `json:"addr,omitempty"` // the caller's address; "local" on the server's own socket
	Token     string   `json:"token,omitempty"`
	TokenName string   `json:"token_name,omitempty"`
	Action    string   `json:"action"`            // "job.cancel", "sign-in"
	Object    string   `json:"object,omitempty"`  // "job 12"
	Owner     UserName `json:"owner,omitempty"`   // whose it is, if another's
	Answer    string   `json:"answer"`            // "ok", or the error's code
	Reason    string   `json:"reason,omitempty"`  // the error's finer reason
	Message   string   `json:"message,omitempty"` // what the caller was told
	Detail    string   `json:"detail,omitempty"`  // what was sent, of changes to policy and nodes
	Count     int64    `json:"count,omitempty"`   // how often, where like calls are told as one
}

// AuditOK is the answer of what was done.
const AuditOK = "ok"

// Bounds of the texts in the audit log.
const (
	maxAuditWord = 256
	maxAuditText = 1024
)

// Clean makes every text of the entry one that neither a log file nor a terminal takes for more than text.
func (e *AuditEntry) Clean() {
	for _, p := range []*string{
		(*string)(&e.User), (*string)(&e.Node), &e.Addr, &e.Token, &e.TokenName, &e.Action,
		&e.Object, (*string)(&e.Owner), &e.Answer, &e.Reason,
	} {
		*p = Plain(*p, maxAuditWord)
	}
	e.Message, e.Detail = Plain(e.Message, maxAuditText), Plain(e.Detail, maxAuditText)
}

// Plain cuts text to at most so many bytes and escapes what does not print, as in a Go string: a line break is \n.
// Nobody who chooses a name or a header can make lines of a log, or steer a terminal.
func Plain(text string, most int) string {
	odd := func(r rune) bool { return r == utf8.RuneError || r == '\\' || !unicode.IsPrint(r) }
	if len(text) <= most && strings.IndexFunc(text, odd) < 0 {
		return text
	}
	var b strings.Builder
	for i, r := range text {
		one := string(r)
		if odd(r) {
			quoted := strconv.QuoteRune(r)
			one = quoted[1 : len(quoted)-1]
		}
		if r == utf8.RuneError {
			one = `\ufffd`
		}
		if b.Len()+len(one) > most-3 && i+utf8.RuneLen(r) < len(text) || b.Len()+len(one) > most {
			b.WriteString("…")
			break
		}
		b.WriteString(one)
	}
	return b.String()
}
