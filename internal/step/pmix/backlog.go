package pmix

import "sync"

// backlog counts what waits for the tasks of a step to read it. Each connection has a bound of its own, and there are
// many: tasks that do not read must not fill the keeper's memory. Large parts, which many connections may share, are
// counted once, and among what all steps hold.
type backlog struct {
	most int64 // of large parts

	mu     sync.Mutex
	small  int64
	large  int64
	shared map[*byte]int // how often a large part waits, by where it lies
}

// maxSmall is how many bytes of small parts wait for the tasks of a step, beyond one message for each connection.
const maxSmall = 64 << 20

// add counts a message, or reports that too much waits already. first: nothing else waits on its connection.
func (b *backlog) add(parts [][]byte, first bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, p := range parts {
		if !b.take(p, first) {
			for _, taken := range parts[:i] {
				b.give(taken)
			}
			return false
		}
	}
	return true
}

// done counts a part out.
func (b *backlog) done(part []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.give(part)
}

func (b *backlog) take(part []byte, first bool) bool {
	size := int64(len(part))
	if size <= smallMessage {
		if !first && b.small+size > maxSmall {
			return false
		}
		b.small += size
		return true
	}
	if n := b.shared[&part[0]]; n > 0 {
		b.shared[&part[0]] = n + 1
		return true
	}
	if b.large+size > b.most {
		return false
	}
	if total.Add(size) > allBytes {
		total.Add(-size)
		return false
	}
	if b.shared == nil {
		b.shared = map[*byte]int{}
	}
	b.large += size
	b.shared[&part[0]] = 1
	return true
}

func (b *backlog) give(part []byte) {
	size := int64(len(part))
	if size <= smallMessage {
		b.small -= size
		return
	}
	if b.shared[&part[0]]--; b.shared[&part[0]] == 0 {
		delete(b.shared, &part[0])
		b.large -= size
		total.Add(-size)
	}
}
