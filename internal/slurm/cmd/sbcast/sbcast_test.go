package sbcast

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// TestTree sends a file to eleven receivers with a fanout of two: three levels.
func TestTree(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	want := bytes.Repeat([]byte("the same line again and again\n"), 20_000)
	source := filepath.Join(dir, "source")
	if err := os.WriteFile(source, want, 0o750); err != nil {
		t.Fatal(err)
	}
	for _, packed := range []bool{false, true} {
		file, err := os.Open(source)
		if err != nil {
			t.Fatal(err)
		}
		const nodes = 11
		s := &sender{file: file, head: header{Size: int64(len(want)), Mode: 0o750, Packed: packed}, fanout: 2, block: 100_000}
		tr, err := openTree(s)
		if err != nil {
			t.Fatal(err)
		}
		tr.expect(nodes)
		var wg sync.WaitGroup
		for rank := range nodes {
			wg.Go(func() {
				o := &order{
					Dest: filepath.Join(dir, fmt.Sprintf("copy%d", rank)), Force: true, Addrs: tr.addrs,
					Print: tr.print, Secret: tr.secret,
				}
				if err := receive(t.Context(), o, strconv.Itoa(rank), "n"); err != nil {
					t.Errorf("receiver %d: %v", rank, err)
				}
			})
		}
		wg.Wait()
		tr.close()
		_ = file.Close()
		for rank := range nodes {
			name := filepath.Join(dir, fmt.Sprintf("copy%d", rank))
			got, err := os.ReadFile(name)
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("packed %v: copy %d has %d bytes of %d: %v", packed, rank, len(got), len(want), err)
			}
			if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o750 {
				t.Errorf("copy %d: %v %v", rank, info.Mode(), err)
			}
			_ = os.Remove(name)
		}
	}
}

// TestEveryNodeOnce: whatever the fanout, each node has the file from one other.
func TestEveryNodeOnce(t *testing.T) {
	t.Parallel()
	for _, fanout := range []int{1, 2, 8} {
		for n := 1; n < 100; n++ {
			came := make([]int, n)
			for k := range min(fanout, n) {
				came[k]++
			}
			for k := range n {
				for _, c := range below(k, fanout, n) {
					came[c]++
				}
			}
			for k, times := range came {
				if times != 1 {
					t.Errorf("fanout %d, %d nodes: node %d has it %d times", fanout, n, k, times)
				}
			}
		}
	}
}

// TestBrokenFile: what does not come whole is not there.
func TestBrokenFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	source, err := os.Create(filepath.Join(dir, "source"))
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	text := strings.Repeat("x", 1000)
	if _, err := source.WriteString(text); err != nil {
		t.Fatal(err)
	}
	var sent bytes.Buffer
	s := &sender{file: source, head: header{Size: 1000, Mode: 0o600}, block: 100}
	if err := s.write(&sent); err != nil {
		t.Fatal(err)
	}
	o := &order{Dest: filepath.Join(dir, "dest")}
	bad := bytes.Clone(sent.Bytes())
	bad[len(bad)-500] ^= 1
	for name, data := range map[string][]byte{"cut off": sent.Bytes()[:600], "changed": bad, "nothing": nil} {
		if err := take(bytes.NewReader(data), o, func([]byte) {}); err == nil {
			t.Errorf("%s: it is taken for whole", name)
		}
		if left, _ := filepath.Glob(filepath.Join(dir, "[.d]*")); len(left) > 0 {
			t.Errorf("%s: %q is left", name, left)
		}
	}
	if err := take(bytes.NewReader(sent.Bytes()), o, func([]byte) {}); err != nil {
		t.Fatal(err)
	}
	if err := take(bytes.NewReader(sent.Bytes()), o, func([]byte) {}); !errors.Is(err, os.ErrExist) {
		t.Errorf("a file that is there: %v", err)
	}
}

// Nodes that share a folder each find what another has made: the same file of the same broadcast is theirs too, without
// -f; one that is another's is not replaced.
func TestSharedFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(text string) []byte {
		source, err := os.Create(filepath.Join(dir, "source"))
		if err != nil {
			t.Fatal(err)
		}
		defer source.Close()
		var sent bytes.Buffer
		s := &sender{file: source, head: header{Size: int64(len(text)), Mode: 0o600}, block: 100}
		if _, err = source.WriteString(text); err == nil {
			err = s.write(&sent)
		}
		if err != nil {
			t.Fatal(err)
		}
		return sent.Bytes()
	}
	one, two := file(strings.Repeat("one", 100)), file(strings.Repeat("two", 100))
	o := &order{Dest: filepath.Join(dir, "dest"), Began: 1} // all that is there came later
	ends := make(chan error)
	for range 8 {
		go func() { ends <- take(bytes.NewReader(one), o, func([]byte) {}) }()
	}
	for range 8 {
		if err := <-ends; err != nil {
			t.Errorf("of eight nodes with one folder: %v", err)
		}
	}
	if err := take(bytes.NewReader(two), o, func([]byte) {}); !errors.Is(err, os.ErrExist) {
		t.Errorf("another file that came meanwhile: %v", err)
	}
	later := &order{Dest: o.Dest, Began: 1 << 62}
	if err := take(bytes.NewReader(one), later, func([]byte) {}); !errors.Is(err, os.ErrExist) {
		t.Errorf("the same file from before: %v", err)
	}
	if text, err := os.ReadFile(o.Dest); err != nil || string(text) != strings.Repeat("one", 100) {
		t.Errorf("%q, %v is there", text, err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".sbcast*")); len(left) > 0 {
		t.Errorf("%q is left", left)
	}
}

// A receiver that comes twice, or is none of the step's, is sent away; the others have the file all the same.
func TestStrangeRanks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	source := filepath.Join(dir, "source")
	if err := os.WriteFile(source, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(source)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	tr, err := openTree(&sender{file: file, head: header{Size: 4, Mode: 0o600}, fanout: 2, block: 100})
	if err != nil {
		t.Fatal(err)
	}
	defer tr.close()
	tr.expect(2)
	take := func(rank int, name string) error {
		o := &order{Dest: filepath.Join(dir, name), Addrs: tr.addrs, Print: tr.print, Secret: tr.secret}
		return receive(t.Context(), o, strconv.Itoa(rank), "n")
	}
	first := make(chan error, 2)
	for range 2 {
		go func() { first <- take(0, fmt.Sprintf("first%d", len(first))) }()
	}
	if err := take(7, "seventh"); err == nil {
		t.Error("a receiver that is none of the two had the file")
	}
	if err := take(1, "second"); err != nil {
		t.Errorf("the second receiver: %v", err)
	}
	if a, b := <-first, <-first; (a == nil) == (b == nil) {
		t.Errorf("of two with one place one has the file: %v, %v", a, b)
	}
}
