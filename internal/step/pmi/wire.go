package pmi

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// call is one task's conversation.
type call struct {
	n     *Node
	local int
	rank  int32
	in    *lines
	out   io.Writer
	two   bool // it speaks PMI-2
	final bool // it said goodbye
}

// lines reads what a task sends, and never more than it should.
type lines struct{ r *bufio.Reader }

func newLines(r io.Reader) *lines { return &lines{bufio.NewReaderSize(r, maxLine)} }

// line is up to the next newline.
func (l *lines) line() (string, error) {
	b, err := l.r.ReadSlice('\n')
	if err != nil {
		if errors.Is(err, bufio.ErrBufferFull) {
			err = fmt.Errorf("a line of more than %d characters", maxLine)
		}
		return "", err
	}
	return strings.TrimSuffix(string(b), "\n"), nil
}

// block is a PMI-2 message: six characters that say how long it is.
func (l *lines) block() (string, error) {
	var head [6]byte
	if _, err := io.ReadFull(l.r, head[:]); err != nil {
		return "", err
	}
	size, err := strconv.Atoi(strings.TrimSpace(string(head[:])))
	if err != nil || size < 0 || size > maxLine {
		return "", fmt.Errorf("%q is no length", head)
	}
	body := make([]byte, size)
	_, err = io.ReadFull(l.r, body)
	return string(body), err
}

func (c *call) run() error {
	for !c.final {
		var text string
		var err error
		if c.two {
			text, err = c.in.block()
		} else {
			text, err = c.in.line()
		}
		if err != nil {
			return err
		}
		if c.two {
			err = c.second(text)
		} else {
			err = c.first(text)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// say sends a PMI-1 line.
func (c *call) say(format string, args ...any) error {
	_, err := fmt.Fprintf(c.out, format+"\n", args...)
	return err
}

// first answers a PMI-1 line: words of KEY=VALUE.
func (c *call) first(text string) error {
	q := fields(text, " ")
	switch q["cmd"] {
	case "init":
		version, sub := q["pmi_version"], q["pmi_subversion"]
		if version != "1" && version != "2" {
			return c.say("cmd=response_to_init pmi_version=2 pmi_subversion=0 rc=-1")
		}
		c.two = version == "2"
		return c.say("cmd=response_to_init pmi_version=%s pmi_subversion=%s rc=0", version, sub)
	case "initack": // of tasks that connect by port; they say who they are first
		return c.say("cmd=initack\ncmd=set size=%d\ncmd=set rank=%d\ncmd=set debug=0", c.n.cfg.Size, c.rank)
	case "get_maxes":
		return c.say("cmd=maxes kvsname_max=%d keylen_max=%d vallen_max=%d", maxKey, maxKey, maxValue)
	case "get_appnum":
		return c.say("cmd=appnum appnum=0")
	case "get_universe_size":
		return c.say("cmd=universe_size size=%d", c.n.cfg.Size)
	case "get_my_kvsname":
		return c.say("cmd=my_kvsname kvsname=%s", c.n.cfg.Job)
	case "put":
		key, value := q["key"], q["value"]
		if at := strings.Index(text, " value="); at >= 0 { // a value may have blanks
			value = text[at+len(" value="):]
		}
		if err := c.n.put(key, value); err != nil {
			return c.say("cmd=put_result rc=-1 msg=%s", plain(err.Error()))
		}
		return c.say("cmd=put_result rc=0 msg=success")
	case "get":
		if v, ok := c.n.get(q["key"]); ok {
			return c.say("cmd=get_result rc=0 msg=success value=%s", v)
		}
		return c.say("cmd=get_result rc=-1 msg=key_%s_not_found value=unknown", plain(q["key"]))
	case "barrier_in":
		if err := c.n.pass(); err != nil {
			return err
		}
		return c.say("cmd=barrier_out rc=0")
	case "publish_name", "unpublish_name", "lookup_name":
		return c.name(q)
	case "finalize":
		c.final = true
		return c.say("cmd=finalize_ack")
	case "abort":
		code, _ := strconv.Atoi(q["exitcode"])
		c.n.cfg.Abort(c.rank, code, "")
		return nil
	case "spawn":
		return c.say("cmd=spawn_result rc=-1 status=-1")
	}
	if strings.HasPrefix(text, "mcmd=spawn") { // lines up to endcmd
		for text != "endcmd" {
			var err error
			if text, err = c.in.line(); err != nil {
				return err
			}
		}
		return c.say("cmd=spawn_result rc=-1 status=-1")
	}
	return fmt.Errorf("%.40q is no command", text)
}

// name publishes a service among the tasks of this node. Across nodes there is no name service. Nothing is said under
// the lock: who does not listen would hold up all others, and the end of the step.
func (c *call) name(q map[string]string) error { return c.say("%s", c.n.name(q)) }

func (n *Node) name(q map[string]string) string {
	service := q["service"]
	n.mu.Lock()
	defer n.mu.Unlock()
	switch port, known := n.names[service]; {
	case q["cmd"] == "publish_name" && !known && len(n.names) < maxKeys && len(service)+len(q["port"]) <= maxKey+maxValue:
		if n.hold(len(service)+len(q["port"])) != nil {
			return "cmd=publish_result info=no_room rc=-1 msg=no_room"
		}
		n.names[service] = q["port"]
		return "cmd=publish_result info=ok rc=0 msg=success"
	case q["cmd"] == "publish_name":
		return "cmd=publish_result info=in_use rc=-1 msg=in_use"
	case q["cmd"] == "lookup_name" && known:
		return fmt.Sprintf("cmd=lookup_result info=ok port=%s rc=0 msg=success", port)
	case q["cmd"] == "unpublish_name" && known:
		delete(n.names, service)
		_ = n.hold(-len(service) - len(port)) // less is never too much
		return "cmd=unpublish_result info=ok rc=0 msg=success"
	}
	return fmt.Sprintf("cmd=%s_result info=not_found rc=-1 msg=not_found", strings.TrimSuffix(q["cmd"], "_name"))
}

// answer sends a PMI-2 block.
func (c *call) answer(q map[string]string, pairs ...string) error {
	text := "cmd=" + q["cmd"] + "-response;"
	if id := q["thrid"]; id != "" {
		text += "thrid=" + id + ";"
	}
	for i := 0; i < len(pairs); i += 2 {
		text += pairs[i] + "=" + strings.ReplaceAll(pairs[i+1], ";", ";;") + ";"
	}
	_, err := fmt.Fprintf(c.out, "%6d%s", len(text), text)
	return err
}

func (c *call) done(q map[string]string, err error) error {
	if err != nil {
		return c.answer(q, "rc", "1", "errmsg", err.Error())
	}
	return c.answer(q, "rc", "0")
}

// second answers a PMI-2 block: KEY=VALUE pairs, each ended by a semicolon, which is doubled inside values.
func (c *call) second(text string) error {
	q := fields(strings.ReplaceAll(text, ";;", "\x00"), ";")
	n := c.n
	found := func(v string, ok bool) error {
		if !ok {
			return c.answer(q, "found", "FALSE", "rc", "0")
		}
		return c.answer(q, "found", "TRUE", "value", v, "rc", "0")
	}
	switch q["cmd"] {
	case "fullinit":
		return c.answer(q, "pmi-version", "2", "pmi-subversion", "0", "rank", strconv.Itoa(int(c.rank)), "size",
			strconv.Itoa(n.cfg.Size),
			"appnum", "0", "debugged", "FALSE", "pmiverbose", "FALSE", "rc", "0")
	case "job-getid":
		return c.answer(q, "jobid", n.cfg.Job, "rc", "0")
	case "info-getjobattr":
		switch q["key"] {
		case mappingKey:
			return found(n.cfg.Mapping, n.cfg.Mapping != "")
		case "universeSize":
			return found(strconv.Itoa(n.cfg.Size), true)
		}
		return found("", false)
	case "info-putnodeattr":
		return c.done(q, n.putAttr(q["key"], q["value"]))
	case "info-getnodeattr":
		return found(n.attr(q["key"], strings.EqualFold(q["wait"], "TRUE")))
	case "kvs-put":
		return c.done(q, n.put(q["key"], q["value"]))
	case "kvs-get":
		return found(n.get(q["key"]))
	case "kvs-fence":
		return c.done(q, n.pass())
	case "finalize":
		c.final = true
		return c.done(q, nil)
	case "abort":
		n.cfg.Abort(c.rank, 1, q["msg"])
		return nil
	case "job-connect", "job-disconnect", "spawn", "name-publish", "name-lookup", "name-unpublish":
		return c.done(q, errors.New("not supported"))
	}
	return fmt.Errorf("%.40q is no command", text)
}

// fields splits KEY=VALUE parts.
func fields(text, sep string) map[string]string {
	out := map[string]string{}
	for part := range strings.SplitSeq(text, sep) {
		if key, value, ok := strings.Cut(part, "="); ok {
			out[strings.TrimSpace(key)] = strings.ReplaceAll(value, "\x00", ";")
		}
	}
	return out
}

// plain makes one word of a text.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		if r <= ' ' {
			return '_'
		}
		return r
	}, text)
}
