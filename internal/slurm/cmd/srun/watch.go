package srun

import (
	"bytes"
	"encoding/json"
	"time"

	"bireme.dev/bireme/internal/wire"
)

// What is kept for those who watch a step with sattach, and what they typed: bounded, so that nobody who does not
// follow holds the step up forever or eats srun's memory.
const (
	copiesWaiting = 256
	copyPatience  = 5 * time.Second
	typedWaiting  = 1024
)

// gallery is who watches the parts of a step.
type gallery struct {
	parts []balcony
	typed chan partFrame // input of watchers; it must not hold up what tasks write
}

// balcony is who watches one part.
type balcony struct {
	open   bool
	past   []frame       // exits that whoever comes late must hear of
	copies chan frame    // nil: nobody ever watched
	sent   chan struct{} // closed when all copies are sent
}

// balcony is that of a part.
func (p *pump) balcony(part int) *balcony {
	if p.gallery.parts == nil {
		p.gallery.parts = make([]balcony, len(p.links))
	}
	return &p.gallery.parts[part]
}

// watched takes the server's word on how many watch a part. Whoever comes hears what is there and what has ended.
func (p *pump) watched(part int, watchers int) {
	b := p.balcony(part)
	if b.open = watchers > 0; !b.open {
		return
	}
	if b.copies == nil {
		b.copies, b.sent = make(chan frame, copiesWaiting), make(chan struct{})
		go b.send(p.links[part]) // ends when copies is closed
	}
	made := p.s.parts[part].made
	b.show(frame{t: wire.TypeLayout, header: wire.StepLayout{Nodes: made.Step.Nodes, Ranks: made.Ranks}})
	for _, f := range b.past {
		b.show(f)
	}
}

// send passes copies to the server, which knows who watches.
func (b *balcony) send(l *link) {
	defer close(b.sent)
	for f := range b.copies {
		_ = l.server().Send(f.t, f.header, f.payload) // a break shows in the reader
	}
}

// copy gives those who watch a part what came of it.
func (p *pump) copy(part int, came wire.Frame) {
	b := p.balcony(part)
	exit := came.Type == wire.TypeTaskExit || came.Type == wire.TypeStepExit
	if !exit && (!b.open || came.Type != wire.TypeIO) {
		return
	}
	f := frame{came.Type, json.RawMessage(bytes.Clone(came.Header)), bytes.Clone(came.Payload)} // whose room is used again
	if exit {
		b.past = append(b.past, f)
	}
	if b.open {
		b.show(f)
	}
}

// show queues a copy. Where it is not taken the step goes on without those who watch.
func (b *balcony) show(f frame) {
	select {
	case b.copies <- f:
		return
	default:
	}
	late := time.NewTimer(copyPatience)
	defer late.Stop()
	select {
	case b.copies <- f:
	case <-late.C:
		b.open = false
		select {
		case <-b.copies: // the oldest makes room for the word that ends the watch: there is a gap now
		default:
		}
		b.copies <- frame{t: wire.TypeBye}
	}
}

// closeGallery sees that the last copies leave before the streams are closed.
func (p *pump) closeGallery() {
	if p.gallery.typed != nil {
		close(p.gallery.typed)
	}
	late := time.NewTimer(copyPatience)
	defer late.Stop()
	for i := range p.gallery.parts {
		b := &p.gallery.parts[i]
		if b.copies == nil {
			continue
		}
		close(b.copies)
		select {
		case <-b.sent:
		case <-late.C:
			return
		}
	}
}

// typed hands what somebody who watches typed to the tasks.
func (p *pump) typed(part int, f wire.Frame) {
	if p.gallery.typed == nil {
		p.gallery.typed = make(chan partFrame, typedWaiting)
		go func(list <-chan partFrame) { // ends when it is closed
			for f := range list {
				_ = p.links[f.part].Send(wire.TypeInput, json.RawMessage(f.Header), f.Payload)
			}
		}(p.gallery.typed)
	}
	select {
	case p.gallery.typed <- partFrame{part, f}:
	default:
		p.s.w.Errorf("input from sattach is lost: the tasks do not read it")
	}
}
