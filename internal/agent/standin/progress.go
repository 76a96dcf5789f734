package standin

import (
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"bireme.dev/bireme/internal/agent/docker"
	"bireme.dev/bireme/internal/agent/launcher"
	"bireme.dev/bireme/internal/wire"
)

// PullFile is the note of how far the image is, as JSON of wire.Pull.
const PullFile = "pull"

// progressEvery is how often that is noted.
const progressEvery = 500 * time.Millisecond

// pullProgress notes how far an image is until it is ended. An engine may say so many times a second, and then nothing
// for long: what it last said is noted at the next turn.
func pullProgress(note func(name, text string), image string) (told func(docker.Progress), end func()) {
	var mu sync.Mutex
	var now docker.Progress
	notePull(note, image, now)
	stop := make(chan struct{})
	var turns sync.WaitGroup
	turns.Go(func() {
		tick := time.NewTicker(progressEvery)
		defer tick.Stop()
		for noted := (docker.Progress{}); ; {
			select {
			case <-stop:
				return
			case <-tick.C:
			}
			mu.Lock()
			next := now
			mu.Unlock()
			if next != noted {
				noted = next
				notePull(note, image, next)
			}
		}
	})
	told = func(p docker.Progress) {
		mu.Lock()
		defer mu.Unlock()
		now = p
	}
	return told, func() {
		close(stop)
		turns.Wait()
	}
}

// notePull notes how far the image is, in words and in numbers.
func notePull(note func(name, text string), image string, p docker.Progress) {
	text := launcher.Fetching + image
	if p.Total > 0 {
		text += fmt.Sprintf(": %d of %d MB", p.Done>>20, p.Total>>20)
	}
	if p.Extracted > 0 {
		text += fmt.Sprintf(", %d MB unpacked", p.Extracted>>20)
	}
	b, err := json.Marshal(wire.Pull{Downloaded: p.Done, Extracted: p.Extracted, Total: p.Total, Final: p.Final})
	if err == nil {
		note(PullFile, string(b))
	}
	note(launcher.DoingFile, text)
}
