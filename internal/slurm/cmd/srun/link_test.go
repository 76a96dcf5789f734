package srun

import (
	"testing"

	"bireme.dev/bireme/internal/wire"
	"bireme.dev/bireme/internal/wire/direct"
)

// A server that is not told of the last word of a node that srun hears directly takes srun for lost, and cancels its job.
func TestDirectEndIsToldBeforeLeaving(t *testing.T) {
	t.Parallel()
	for range 30 { // srun leaves at once: what it tells late is lost only sometimes
		var news []string
		over := make(chan struct{})
		var p *play
		p = newPlay(t, 7, one(), func(hub *wire.Conn, _ func() string) {
			defer close(over)
			raw, err := direct.Dial(t.Context(), (*wire.Direct)(p.asked.Direct), "n001")
			if err != nil {
				t.Error(err)
				return
			}
			node := wire.NewConn(raw)
			defer node.Close()
			exit(node, "n001", 0, 0, 0)
			last(node, "n001")
			for {
				f, err := hub.Next()
				if err != nil {
					return
				}
				var n wire.DirectNews
				if f.Type == wire.TypeDirectNews && f.Decode(&n) == nil {
					news = append(news, n.State)
				}
			}
		})
		p.direct = true
		got := p.Run(t, "srun", Run, []string{"true"})
		<-over
		if got.Code != 0 || len(news) != 2 || news[0] != "direct" || news[1] != "done" {
			t.Fatalf("srun: exit %d, %s; it told of the node: %v, want direct and done", got.Code, got.Err, news)
		}
	}
}
