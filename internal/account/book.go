package account

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	foundAge      = time.Minute
	failedAge     = 10 * time.Second // an account that is made is there soon after
	getentTimeout = 3 * time.Second  // for getent; a directory that is away must not hold its callers longer
	maxKept       = 4096
	maxAnswer     = 1 << 20
	maxAsking     = 8 // getents at once
)

// Book answers for one machine's accounts and remembers what it said for a while. The zero value is this machine's.
type Book struct {
	// Dir holds passwd, group and nsswitch.conf; empty: /etc.
	Dir string
	// Run runs getent for a program that has its own way to start processes. It returns what getent printed, or
	// ErrUnknown when getent knows no answer or is not there. Nil: as a child of this process.
	Run func(argv []string, patience time.Duration) ([]byte, error)

	mu     sync.Mutex
	kept   map[string]*entry
	asking chan struct{}
}

// entry is an answer, or one that is on its way.
type entry struct {
	ready chan struct{} // closed when the rest may be read
	value any
	err   error
	until time.Time
}

// remembered returns the answer under a key; whoever asks first finds it while the others wait. When a source is
// silent, what it said last still holds.
func remembered[T any](b *Book, key string, find func() (T, error)) (T, error) {
	b.mu.Lock()
	old := b.kept[key]
	if old != nil {
		select {
		case <-old.ready:
			if time.Now().Before(old.until) {
				b.mu.Unlock()
				return answer[T](old)
			}
		default:
			b.mu.Unlock()
			<-old.ready
			return answer[T](old)
		}
	}
	e := &entry{ready: make(chan struct{})}
	if len(b.kept) >= maxKept || b.kept == nil {
		b.kept = map[string]*entry{}
	}
	b.kept[key] = e
	b.mu.Unlock()

	v, err := find()
	e.value, e.err, e.until = v, err, time.Now().Add(foundAge)
	if err != nil {
		e.until = time.Now().Add(failedAge)
		if old != nil && old.err == nil && !errors.Is(err, ErrUnknown) {
			e.value, e.err = old.value, nil
		}
	}
	close(e.ready)
	return answer[T](e)
}

func answer[T any](e *entry) (T, error) {
	v, _ := e.value.(T)
	return v, e.err
}

// look finds an entry in a file, else by getent. getent takes a name of digits for a number, so its answer is checked,
// too.
func look[T any](b *Book, database, what, key string, parse func(string) *T, is func(*T) bool) (*T, error) {
	return remembered(b, what, func() (found *T, err error) {
		match := func(line string) bool {
			if v := parse(line); v != nil && is(v) {
				found = v
			}
			return found == nil
		}
		if err := scan(b.file(database), match); err != nil {
			return nil, fmt.Errorf("%s: %w", what, err)
		}
		if found != nil {
			return found, nil
		}
		out, err := b.getent(database, key)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", what, err)
		}
		for line := range strings.Lines(string(out)) {
			if !match(strings.TrimRight(line, "\n")) {
				return found, nil
			}
		}
		return nil, fmt.Errorf("%s: %w", what, ErrUnknown)
	})
}

func (b *Book) file(name string) string {
	if b.Dir == "" {
		return "/etc/" + name
	}
	return filepath.Join(b.Dir, name)
}

// scan calls f with each line until it says false. A file that is not there has none.
func scan(path string, f func(line string) bool) error {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	s := bufio.NewScanner(file)
	s.Buffer(nil, maxAnswer)
	for s.Scan() {
		if !f(s.Text()) {
			return nil
		}
	}
	return s.Err()
}

// elsewhere reports whether the machine's settings name a source beyond the files for the first of the databases they
// speak of. Without settings it may be.
func (b *Book) elsewhere(databases ...string) bool {
	for _, db := range databases {
		known, other := false, false
		err := scan(b.file("nsswitch.conf"), func(line string) bool {
			line, _, _ = strings.Cut(line, "#")
			name, sources, ok := strings.Cut(line, ":")
			if !ok || strings.TrimSpace(name) != db {
				return true
			}
			known = true
			for _, src := range strings.Fields(sources) {
				// systemd's source makes up users for services and adds nobody to a group.
				if !slices.Contains([]string{"files", "compat", "systemd"}, src) && src[0] != '[' {
					other = true
				}
			}
			return false
		})
		if err != nil {
			return true
		}
		if known {
			return other
		}
	}
	return true
}

// getent asks the system's name service.
func (b *Book) getent(database, key string) ([]byte, error) {
	b.mu.Lock()
	if b.asking == nil {
		b.asking = make(chan struct{}, maxAsking)
	}
	b.mu.Unlock()
	b.asking <- struct{}{}
	defer func() { <-b.asking }()
	run := b.Run
	if run == nil {
		run = runGetent
	}
	return run([]string{"getent", database, key}, getentTimeout)
}

// NotFound is getent's exit code for a key nobody has.
const NotFound = 2

func runGetent(argv []string, patience time.Duration) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return out, nil
	case ctx.Err() != nil:
		return nil, fmt.Errorf("getent %s gave no answer in %s", argv[1], patience)
	case errors.Is(err, exec.ErrNotFound), errors.As(err, &exit) && exit.ExitCode() == NotFound:
		return nil, ErrUnknown
	case exit != nil && argv[1] == "initgroups" && exit.ExitCode() == 1:
		return nil, ErrUnknown // a getent without that database
	}
	return nil, fmt.Errorf("getent %s: %w", argv[1], err)
}
