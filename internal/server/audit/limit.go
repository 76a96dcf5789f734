package audit

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"bireme.dev/bireme/internal/core"
)

// Bounds of a window of the limiter. A caller who makes as many calls as the server answers, all different, adds at
// most 2*perCaller+1 rows in it, and all callers together 2*perWindow+maxCallers.
const (
	windowLen  = time.Minute
	perAction  = 3 // objects that are told one by one; cheap calls must not hide those of another kind
	perCaller  = 40
	perWindow  = 400
	maxCallers = 100
)

// limiter tells like entries of a window as one, and bounds how many kinds of them a caller may add.
type limiter struct {
	mu      sync.Mutex
	callers map[string]*window
	rows    int
	others  int64 // entries of callers beyond maxCallers
	last    core.Time
}

// window is what one caller did in the present minute.
type window struct {
	kinds map[kind]*repeat
	acts  map[kind]int     // how many objects of an action and answer are told
	rest  *core.AuditEntry // the last entry beyond perCaller kinds
	more  int64            // how many there were
}

// several stands for objects that are not told one by one.
const several = "several"

type kind struct{ action, object, answer, token string }

type repeat struct {
	entry    *core.AuditEntry // the last of its kind
	more     int64            // beyond the first, which was written at once
	objects  string           // those of an entry with Object several, up to maxObjects bytes
	unlisted int64            // objects that are not in it
}

// maxObjects bounds the list of objects of an entry. Decoys must not hide which object a caller was after; a caller who
// fills the list is seen to do so.
const maxObjects = 1000

func (r *repeat) addObject(name string) {
	switch {
	case r.unlisted > 0 || len(r.objects)+len(name)+2 > maxObjects:
		r.unlisted++
	case r.objects == "":
		r.objects = name
	default:
		r.objects += ", " + name
	}
}

// detail lists the objects.
func (r *repeat) detail() string {
	if r.unlisted == 0 {
		return r.objects
	}
	return fmt.Sprintf("%s and %d more", r.objects, r.unlisted)
}

func callerKey(e *core.AuditEntry) string {
	if e.User != "" {
		return "u" + string(e.User)
	}
	return "a" + e.Addr
}

// admit returns the entry if it is to be written now, and counts it otherwise.
func (l *limiter) admit(e *core.AuditEntry) *core.AuditEntry {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.callers == nil {
		l.callers = map[string]*window{}
	}
	key := callerKey(e)
	w := l.callers[key]
	if w == nil {
		if len(l.callers) >= maxCallers {
			l.others++
			l.last = max(l.last, e.At)
			return nil
		}
		w = &window{kinds: map[kind]*repeat{}, acts: map[kind]int{}}
		l.callers[key] = w
	}
	k := kind{e.Action, e.Object, e.Answer, e.Token}
	if r := w.kinds[k]; r != nil {
		r.entry, r.more = e, r.more+1
		return nil
	}
	act := kind{action: e.Action, answer: e.Answer}
	if w.acts[act] >= perAction {
		object := e.Object
		e.Object, e.Owner, e.Detail = several, "", object
		k.object, k.token = several, ""
		if r := w.kinds[k]; r != nil {
			r.entry, r.more = e, r.more+1
			r.addObject(object)
			return nil
		}
	}
	if len(w.kinds) >= perCaller || l.rows >= perWindow {
		w.rest, w.more = e, w.more+1
		return nil
	}
	w.kinds[k] = &repeat{entry: e}
	w.acts[act]++
	l.rows++
	return e
}

// closeWindow begins a new window and gives what the old one held back, by time.
func (l *limiter) closeWindow() []*core.AuditEntry {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []*core.AuditEntry
	for _, w := range l.callers {
		for _, r := range w.kinds {
			if r.more > 0 {
				e := *r.entry
				if e.Count = r.more; e.Object == several {
					e.Detail = r.detail()
				}
				out = append(out, &e)
			}
		}
		if w.more > 0 {
			e := *w.rest
			e.Action, e.Object, e.Owner, e.Detail, e.Count = several, "", "", "", w.more
			e.Message = fmt.Sprintf("%d more calls of this caller within a minute; the last was %s %s: %s", w.more,
				w.rest.Action, w.rest.Object, w.rest.Message)
			out = append(out, &e)
		}
	}
	if l.others > 0 {
		out = append(out, &core.AuditEntry{
			At: l.last, UID: -1, Action: several, Answer: several, Count: l.others,
			Message: "calls of callers beyond the first 100 within a minute",
		})
	}
	l.callers, l.rows, l.others, l.last = nil, 0, 0, 0
	slices.SortFunc(out, func(a, b *core.AuditEntry) int {
		if a.At != b.At {
			if a.At < b.At {
				return -1
			}
			return 1
		}
		return strings.Compare(a.Object, b.Object)
	})
	return out
}
