package call

import (
	"context"
)

// innerKey is where a call that another front end's handler makes has its caller.
type innerKey struct{}

// WithCaller makes a context of calls that a handler makes for its own caller, within this process.
func WithCaller(ctx context.Context, who *Caller) context.Context {
	return context.WithValue(ctx, innerKey{}, who)
}

// CallerOf is the caller of such a call, with a trail of its own in the audit log; nil: it is no such call.
func CallerOf(ctx context.Context) *Caller {
	who, ok := ctx.Value(innerKey{}).(*Caller)
	if !ok {
		return nil
	}
	c := *who
	c.Trail = trail{}
	return &c
}
