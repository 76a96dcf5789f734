package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"bireme.dev/bireme/internal/core"
)

// Last words of an event stream; they are no events.
const (
	watchBye     core.EventKind = "bye"
	watchDropped core.EventKind = "dropped"
)

// Watch calls f for every event after the given sequence number, until f gives an error, ctx ends or the stream breaks.
// A watcher continues after the last Seq it saw; a Gone error says that this is too long ago and it must look afresh.
func (c *StreamClient) Watch(ctx context.Context, after int64, f func(*core.Event) error) error {
	resp, err := c.roundTrip(ctx, call{
		method: "GET", path: api + "/watch", query: url.Values{"after": {strconv.FormatInt(after, 10)}},
		header: http.Header{"Accept": {"text/event-stream"}}, again: always,
	})
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	r := bufio.NewReaderSize(resp.Body, 64<<10)
	var data []byte
	for {
		line, err := r.ReadBytes('\n')
		if err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return c.away(c.end(), err)
		}
		line = bytes.TrimRight(line, "\r\n")
		switch {
		case len(line) == 0:
			if len(data) > 0 {
				ev := new(core.Event)
				if err := json.Unmarshal(data, ev); err != nil {
					return &core.Error{Code: core.Internal, Message: "the event stream cannot be read", Err: err}
				}
				data = data[:0]
				if ev.Kind == watchBye || ev.Kind == watchDropped {
					return &core.Error{Code: core.Unavailable, Message: "the server ended the event stream"}
				}
				if err := f(ev); err != nil {
					return err
				}
			}
		case bytes.HasPrefix(line, []byte("data:")):
			data = append(data, bytes.TrimPrefix(line[5:], []byte(" "))...)
		}
	}
}

// LogQuery says which of a job's output is wanted.
type LogQuery struct {
	Attempt int32 // 0: the present one
	Offset  int64
	Follow  bool // until the job ends
}

// Logs opens a job's log at an offset. The second result is the offset of the first byte that is really there: older
// ones may have been dropped. With Follow the reader ends when the job does.
func (c *StreamClient) Logs(ctx context.Context, id string, q LogQuery) (io.ReadCloser, int64, error) {
	offset := q.Offset
	v := url.Values{"offset": {strconv.FormatInt(offset, 10)}}
	if q.Follow {
		v.Set("follow", "1")
	}
	if q.Attempt > 0 {
		v.Set("attempt", strconv.FormatInt(int64(q.Attempt), 10))
	}
	resp, err := c.roundTrip(ctx, call{method: "GET", path: jobPath(id, "/logs"), query: v, again: always})
	if err != nil {
		return nil, 0, err
	}
	if n, err := strconv.ParseInt(resp.Header.Get("Bireme-Log-Offset"), 10, 64); err == nil {
		offset = n
	}
	return resp.Body, offset, nil
}

// Stream opens the caller's end of a step's stream: frames of package wire in both directions.
func (c *StreamClient) Stream(ctx context.Context, key string) (io.ReadWriteCloser, error) {
	return c.stream(ctx, api+"/streams/"+url.PathEscape(key), nil)
}

// Attach joins those who watch a step: what its tasks write from now on comes, and input goes to them.
func (c *StreamClient) Attach(ctx context.Context, job, step string) (io.ReadWriteCloser, error) {
	return c.stream(ctx, jobPath(job, "/steps/"+url.PathEscape(step)+"/attach"), nil)
}

// Resume opens the caller's end of a step's stream again, at a server that may have been started since. With owns the
// job ends if the caller leaves.
func (c *StreamClient) Resume(ctx context.Context, st *core.Step, key string, owns bool) (io.ReadWriteCloser, error) {
	v := url.Values{"key": {key}}
	if owns {
		v.Set("owns", "1")
	}
	id := strconv.FormatInt(int64(st.Job), 10)
	return c.stream(ctx, jobPath(id, "/steps/"+strconv.Itoa(int(st.ID))+"/resume"), v)
}

func (c *StreamClient) stream(ctx context.Context, path string, query url.Values) (io.ReadWriteCloser, error) {
	resp, err := c.roundTrip(ctx, call{
		method: "GET", path: path, query: query,
		header: http.Header{"Connection": {"Upgrade"}, "Upgrade": {"bireme-stream"}}, again: always,
	})
	if err != nil {
		return nil, err
	}
	conn, ok := resp.Body.(io.ReadWriteCloser)
	if resp.StatusCode != http.StatusSwitchingProtocols || !ok {
		resp.Body.Close()
		return nil, core.Errorf(core.Internal, "the server did not open the step's stream: %s", resp.Status)
	}
	return conn, nil
}
