package sshdoor

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/dstack/attach"
	"bireme.dev/bireme/internal/wire/ranklog"
)

// maxRequest bounds the head of a request for the job's output.
const maxRequest = 16 << 10

// logs answers HTTP on port 10999 of the job: its output, by websocket, from the beginning or a time on until its end.
func (k *caller) logs(c net.Conn) {
	head := &io.LimitedReader{R: c, N: maxRequest}
	in := bufio.NewReader(head)
	stop := time.AfterFunc(handshakeTime, func() { _ = c.Close() })
	r, err := http.ReadRequest(in)
	stop.Stop()
	if err != nil {
		return
	}
	head.N = 1 << 62
	if r.URL.Path != attach.LogsPath {
		answer(c, http.StatusNotFound, "there is nothing but "+attach.LogsPath+" here\n")
		return
	}
	offset, err := k.logStart(r.URL.Query().Get("start_time"))
	if err != nil {
		answer(c, http.StatusBadRequest, err.Error()+"\n")
		return
	}
	key := r.Header.Get("Sec-WebSocket-Key")
	if r.Method != http.MethodGet || key == "" || !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		answer(c, http.StatusUpgradeRequired, "this is a websocket\n")
		return
	}
	ctx, cancel := context.WithCancel(k.ctx)
	defer cancel()
	ws := &websocket{w: c, r: in}
	if err := ws.accept(key); err != nil {
		return
	}
	heard := make(chan struct{})
	go func() { // ends with the channel, which is closed when this handler returns
		defer close(heard)
		defer cancel()
		ws.listen()
	}()
	if err := k.copyLog(ctx, ws, offset); err != nil {
		if ctx.Err() == nil {
			k.d.Log.Debug("output not sent to its end", "job", k.target.Job, "err", err)
		}
		return
	}
	if ws.close() == nil {
		select { // the other side says goodbye, or does not
		case <-heard:
		case <-time.After(closeTime):
		case <-k.ctx.Done():
		}
	}
}

// closeTime is how long a client may take to answer that the output is at its end.
const closeTime = 5 * time.Second

// logStart is where the output from a time on begins; an empty text is the beginning.
func (k *caller) logStart(text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	at, err := parseTime(text)
	if err != nil {
		return 0, errors.New("start_time is not a time of ISO 8601")
	}
	if k.d.LogOffset == nil {
		return 0, nil
	}
	ctx, cancel := context.WithTimeout(k.ctx, lookupTime)
	defer cancel()
	return k.d.LogOffset(ctx, k.target.Job, k.logAttempt(), at)
}

// parseTime reads a time with or without a zone; the + of a zone may have become a space on its way.
func parseTime(text string) (at time.Time, err error) {
	text = strings.ReplaceAll(text, " ", "+")
	for _, form := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999"} {
		if at, err = time.Parse(form, text); err == nil {
			return at, nil
		}
	}
	return at, err
}

// logAttempt is the attempt whose output is meant.
func (k *caller) logAttempt() int32 {
	if k.target.Attempt != 0 {
		return k.target.Attempt
	}
	return k.guest.job.Attempt
}

// copyLog sends the output until the attempt is over.
func (k *caller) copyLog(ctx context.Context, ws *websocket, offset int64) error {
	id := strconv.FormatInt(int64(k.target.Job), 10)
	var filter *ranklog.Filter
	if al := k.guest.job.Alloc; al != nil && len(al.Nodes) > 1 || k.guest.job.Spec.More().Het != nil {
		var skip int64
		offset, skip = ranklog.Begin(offset)
		filter = ranklog.NewFilter(k.target.Node, skip)
	}
	body, _, err := k.api.Logs(ctx, id, client.LogQuery{Attempt: k.logAttempt(), Offset: offset, Follow: true})
	if err != nil {
		return err
	}
	defer body.Close()
	stop := context.AfterFunc(ctx, func() { _ = body.Close() })
	defer stop()
	buf := make([]byte, frameRoom+256<<10)
	for {
		n, err := body.Read(buf[frameRoom:])
		if n > 0 && filter != nil {
			n = copy(buf[frameRoom:], filter.Pass(nil, buf[frameRoom:frameRoom+n]))
		}
		if n > 0 {
			if werr := ws.send(buf, n); werr != nil {
				return werr
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

// answer is a plain HTTP response; the connection ends with it.
func answer(w io.Writer, code int, text string) {
	_, _ = io.WriteString(w, "HTTP/1.1 "+strconv.Itoa(code)+" "+http.StatusText(code)+
		"\r\nContent-Type: text/plain\r\nConnection: close\r\nContent-Length: "+strconv.Itoa(len(text))+"\r\n\r\n"+text)
}
