package call

import (
	"strconv"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
)

// trail is what a call did that the audit log tells. Handlers say what the path does not.
type trail struct {
	rt      *Route
	remote  string
	Object  string        // in place of the route's
	Owner   core.UserName // of another's things that were changed
	touched int
	refused error  // of a part of the call, which as a whole went well
	hidden  *trail // what the call named that is hidden from its caller
	detail  *excerpt
}

// About names what a call is about where the path does not.
func (who *Caller) About(noun, name string) { who.Trail.Object = noun + " " + name }

// Changed notes that another's job was changed.
func (who *Caller) Changed(j *core.Job) {
	if j.Spec.User == who.User {
		return
	}
	t := &who.Trail
	t.Owner = j.Spec.User
	t.add("job " + strconv.FormatInt(int64(j.ID), 10))
}

func (t *trail) add(what string) {
	const most = 20
	switch t.touched++; {
	case t.touched == 1:
		t.Object = what
	case t.touched <= most:
		t.Object += ", " + what
	case t.touched == most+1:
		t.Object += ", …"
	}
}

// AboutToken names the token that a call is about, and whose it is.
func (who *Caller) AboutToken(t *core.Token) {
	who.About("token", t.ID)
	if t.Name != "" {
		who.Trail.Object += " (" + t.Name + ")"
	}
	if t.User != who.User {
		who.Trail.Owner = t.User
	}
}

// Denied notes that parts of a call were refused, which as a whole went well.
func (who *Caller) Denied(out *client.Cancelled) {
	for i := range out.Results {
		if e := out.Results[i].Error; e != nil && e.Code == core.Denied {
			who.Trail.refused = e
			return
		}
	}
}

// Hid notes that a call named something that its caller may not see.
func (who *Caller) Hid(what string, owner core.UserName) {
	t := &who.Trail
	if t.hidden == nil {
		t.hidden = &trail{}
	}
	t.hidden.Owner = owner
	t.hidden.add(what)
}
