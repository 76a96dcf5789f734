package hub

import (
	"fmt"
	"log/slog"
	"runtime/debug"
)

// PanicMessage begins the line of a panic in the log. Tests fail on it.
const PanicMessage = "panic in a handler"

// maxStack bounds what the log gets of a stack.
const maxStack = 16 << 10

// LogPanic writes a panic with the stack it came from. It is called while the panic is being recovered.
func LogPanic(log *slog.Logger, p any, args ...any) {
	stack := debug.Stack()
	log.Error(PanicMessage, append(args, "panic", p, "stack", string(stack[:min(len(stack), maxStack)]))...)
}

// guarded runs a part of the connection. A panic in it ends this connection and not the server: what caused it came
// from this agent, and is derived again, or refused, when the agent is back.
func (k *conn) guarded(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			LogPanic(k.h.log, p, "node", k.who.Name)
			err = fmt.Errorf("the agent's stream broke a rule of the server: %v", p)
		}
	}()
	return f()
}
