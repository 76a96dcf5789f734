package account

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// machine is a directory of account files, with a getent on PATH that knows more and counts its calls.
func machine(t *testing.T, sources string) (*Book, func() int) {
	t.Helper()
	dir := t.TempDir()
	calls := filepath.Join(dir, "calls")
	write := func(name, text string, mode os.FileMode) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	write("passwd", "root:x:0:0:root:/root:/bin/bash\n+nis::::::\nann:x:1000:1000:Ann Lee,,,:/home/ann:/bin/sh\n", 0o644)
	write("group", "root:x:0:\nann:x:1000:\naudio:x:29:ann,bob\n", 0o644)
	write("nsswitch.conf", "passwd: files "+sources+"\ngroup: files "+sources+" # more\n", 0o644)
	write("getent", `#!/bin/sh
echo "$*" >>`+calls+`
case "$*" in
"passwd bob"|"passwd 70001") echo "bob:*:70001:70000:Bob:/net/bob:/bin/zsh" ;;
"passwd 4242") echo "mallory:*:4242:4242::/:/bin/sh" ;;
"group 70000"|"group staff") echo "staff:*:70000:bob,carol" ;;
"initgroups bob") echo "bob  70000 70005 29" ;;
"initgroups ann") echo "ann  70005" ;;
"passwd broken") exit 3 ;;
*) exit 2 ;;
esac
`, 0o755)
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return &Book{Dir: dir}, func() int {
		b, err := os.ReadFile(calls)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		return strings.Count(string(b), "\n")
	}
}

func TestFilesFirst(t *testing.T) {
	b, calls := machine(t, "sss")
	u, err := b.ByName("ann")
	if err != nil || *u != (User{"ann", 1000, 1000, "/home/ann", "/bin/sh", "Ann Lee"}) {
		t.Fatalf("ann: %+v, %v", u, err)
	}
	if u, err := b.ByUID(0); err != nil || u.Name != "root" {
		t.Errorf("uid 0: %+v, %v", u, err)
	}
	if g, err := b.GroupByGID(29); err != nil || g.Name != "audio" || !slices.Equal(g.Members, []string{"ann", "bob"}) {
		t.Errorf("gid 29: %+v, %v", g, err)
	}
	if n := calls(); n != 0 {
		t.Errorf("getent was asked %d times for what the files say", n)
	}
}

func TestDirectoryUsers(t *testing.T) {
	b, calls := machine(t, "sss")
	for range 3 {
		u, err := b.ByUID(70001)
		if err != nil || *u != (User{"bob", 70001, 70000, "/net/bob", "/bin/zsh", "Bob"}) {
			t.Fatalf("uid 70001: %+v, %v", u, err)
		}
		if got, err := b.Groups(u); err != nil || !slices.Equal(got, []uint32{70000, 29, 70005}) {
			t.Errorf("groups of bob: %v, %v", got, err)
		}
		if g, err := b.GroupByName("staff"); err != nil || g.GID != 70000 {
			t.Errorf("staff: %+v, %v", g, err)
		}
	}
	if n := calls(); n != 3 {
		t.Errorf("getent was asked %d times; each answer is remembered", n)
	}
	if u, err := b.ByName("bob"); err != nil || u.UID != 70001 {
		t.Errorf("bob: %+v, %v", u, err)
	}
}

func TestGroupsOfFileUser(t *testing.T) {
	b, calls := machine(t, "[NOTFOUND=continue] sss")
	ann := &User{Name: "ann", UID: 1000, GID: 1000}
	if got, err := b.Groups(ann); err != nil || !slices.Equal(got, []uint32{1000, 29, 70005}) {
		t.Errorf("with a directory: %v, %v", got, err)
	}
	b, _ = machine(t, "systemd")
	before := calls()
	if got, err := b.Groups(ann); err != nil || !slices.Equal(got, []uint32{1000, 29}) {
		t.Errorf("without one: %v, %v", got, err)
	}
	if calls() != before {
		t.Error("getent was asked although the files are all there is")
	}
}

func TestUnknown(t *testing.T) {
	b, calls := machine(t, "sss")
	for _, name := range []string{"nobody-here", "", "-s", "a:b", "a\nb", "4242"} { // getent takes 4242 for a uid
		if _, err := b.ByName(name); !errors.Is(err, ErrUnknown) {
			t.Errorf("%q: %v", name, err)
		}
	}
	if n := calls(); n != 2 {
		t.Errorf("getent was asked %d times", n)
	}
	if _, err := b.ByName("broken"); err == nil || errors.Is(err, ErrUnknown) {
		t.Errorf("a source that fails is not one that knows nobody: %v", err)
	}
	t.Setenv("PATH", t.TempDir())
	if _, err := b.ByName("carol"); !errors.Is(err, ErrUnknown) {
		t.Errorf("without getent: %v", err)
	}
}

// A directory that goes away keeps nobody out who was there before, and many who ask at once cost one question.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		asked, away := 0, false
		b := &Book{Dir: t.TempDir(), Run: func([]string, time.Duration) ([]byte, error) {
			mu.Lock()
			defer mu.Unlock()
			asked++
			if away {
				return nil, errors.New("no answer")
			}
			return []byte("bob:*:70001:70000:Bob:/net/bob:/bin/zsh\n"), nil
		}}
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				if u, err := b.ByName("bob"); err != nil || u.UID != 70001 {
					t.Errorf("bob: %+v, %v", u, err)
				}
			})
		}
		all.Wait()
		if asked != 1 {
			t.Errorf("asked %d times", asked)
		}
		away = true
		synctest.Wait()
		time.Sleep(foundAge + time.Second)
		if u, err := b.ByName("bob"); err != nil || u.UID != 70001 || asked != 2 {
			t.Errorf("while the directory is away: %+v, %v, asked %d", u, err, asked)
		}
		if _, err := b.ByName("carol"); err == nil || errors.Is(err, ErrUnknown) {
			t.Errorf("carol: %v", err)
		}
		away = false
		time.Sleep(failedAge + time.Second)
		if u, err := b.ByName("bob"); err != nil || u.UID != 70001 {
			t.Errorf("after it: %+v, %v", u, err)
		}
	})
}
