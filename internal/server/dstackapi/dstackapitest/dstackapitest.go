// Package dstackapitest makes calls of dstack's API to a server of servertest, as its clients make them.
package dstackapitest

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"testing"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/dstack/wire"
	"bireme.dev/bireme/internal/server/servertest"
)

// Caller makes calls with one token.
type Caller struct {
	T       testing.TB
	URL     string
	HTTP    *http.Client
	Token   string // empty: none is sent
	Version string // of the client
}

// New makes a user with a role across the cluster, and calls as that user.
func New(t testing.TB, s *servertest.Server, name core.UserName, role core.Role) *Caller {
	t.Helper()
	token := s.Token(core.User{Name: name, Role: role})
	return &Caller{T: t, URL: s.Info.API, HTTP: s.Far(), Token: token, Version: wire.Speaks}
}

// Answer is what came back.
type Answer struct {
	Status int
	Header http.Header
	Body   string
}

// Send posts a body: nil for none, a string as it is, anything else as JSON.
func (c *Caller) Send(path string, body any) Answer {
	c.T.Helper()
	return c.Do(http.MethodPost, path, body)
}

// Do is Send with any method.
func (c *Caller) Do(method, path string, body any) Answer {
	c.T.Helper()
	var r io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		r = bytes.NewReader([]byte(b))
	default:
		data, err := json.Marshal(b)
		if err != nil {
			c.T.Fatal(err)
		}
		r = bytes.NewReader(data)
	}
	ctx, cancel := context.WithTimeout(c.T.Context(), servertest.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, c.URL+path, r)
	if err != nil {
		c.T.Fatal(err)
	}
	if c.Token != "" {
		req.Header.Set("Authorization", "Bearer "+c.Token)
	}
	if c.Version != "" {
		req.Header.Set("X-API-VERSION", c.Version)
	}
	resp, err := c.HTTP.Do(req)
	if err != nil {
		c.T.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		c.T.Fatal(err)
	}
	return Answer{Status: resp.StatusCode, Header: resp.Header, Body: string(bytes.TrimSpace(data))}
}

// Get posts a body and reads the answer, which must be good, into out.
func (c *Caller) Get(path string, body, out any) {
	c.T.Helper()
	a := c.Send(path, body)
	if a.Status != http.StatusOK {
		c.T.Fatalf("%s: %d %s", path, a.Status, a.Body)
	}
	if out == nil {
		return
	}
	if err := json.Unmarshal([]byte(a.Body), out); err != nil {
		c.T.Fatalf("%s: %v: %s", path, err, a.Body)
	}
}

// Refused posts a body and expects a status and a text in the answer.
func (c *Caller) Refused(path string, body any, status int, text string) {
	c.T.Helper()
	a := c.Send(path, body)
	if a.Status != status || !bytes.Contains([]byte(a.Body), []byte(text)) {
		c.T.Errorf("%s: %d %s; want %d with %s", path, a.Status, a.Body, status, text)
	}
}

// As is the same caller with another token.
func (c *Caller) As(token string) *Caller {
	o := *c
	o.Token = token
	return &o
}
