package seal

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

func ringAt(t *testing.T) *Ring {
	t.Helper()
	r, err := Open(filepath.Join(t.TempDir(), "seal.key"), true)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestVectors holds the cipher against the vectors of c2sp.org/XAES-256-GCM.
func TestVectors(t *testing.T) {
	t.Parallel()
	for _, v := range []struct{ key, name, want string }{
		{strings.Repeat("\x01", 32), "", "ce546ef63c9cc60765923609b33a9a1974e96e52daf2fcf7075e2271"},
		{strings.Repeat("\x03", 32), "c2sp.org/XAES-256-GCM", "986ec1832593df5443a179437fd083bf3fdb41abd740a21f71eb769d"},
	} {
		x, err := newXAES([]byte(v.key))
		if err != nil {
			t.Fatal(err)
		}
		nonce := []byte("ABCDEFGHIJKLMNOPQRSTUVWX")
		aead, err := x.derive(nonce)
		if err != nil {
			t.Fatal(err)
		}
		if got := hex.EncodeToString(aead.Seal(nil, nonce[12:], []byte("XAES-256-GCM"), []byte(v.name))); got != v.want {
			t.Errorf("got %s, want %s", got, v.want)
		}
		want, _ := hex.DecodeString(v.want)
		if plain, err := x.open(append(nonce, want...), []byte(v.name)); err != nil || string(plain) != "XAES-256-GCM" {
			t.Errorf("open: %q %v", plain, err)
		}
	}
}

// TestBoundToNameAndBytes: a sealed text opens under its own name only, and not when a bit of it was changed.
func TestBoundToNameAndBytes(t *testing.T) {
	t.Parallel()
	r := ringAt(t)
	sealed, err := r.Seal("a", []byte("secret"))
	if err != nil {
		t.Fatal(err)
	}
	if len(sealed) != len("secret")+Overhead || bytes.Contains(sealed, []byte("secret")) {
		t.Fatalf("sealed as %q", sealed)
	}
	if plain, err := r.Unseal("a", sealed); err != nil || string(plain) != "secret" {
		t.Fatalf("%q %v", plain, err)
	}
	if _, err := r.Unseal("b", sealed); err == nil {
		t.Error("it opens under another name")
	}
	for i := range sealed {
		bad := slices.Clone(sealed)
		bad[i] ^= 1
		if _, err := r.Unseal("a", bad); err == nil {
			t.Errorf("it opens with byte %d changed", i)
		}
	}
	for n := range sealed {
		if _, err := r.Unseal("a", sealed[:n]); err == nil {
			t.Errorf("it opens cut after %d bytes", n)
		}
	}
}

// TestBareKeyAndOldTexts: a file of one bare key, and what was sealed with it before there were rings.
func TestBareKeyAndOldTexts(t *testing.T) {
	t.Parallel()
	path, raw := filepath.Join(t.TempDir(), "seal.key"), make([]byte, keySize)
	rand.Read(raw)
	if err := os.WriteFile(path, []byte(hex.EncodeToString(raw)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	block, _ := aes.NewCipher(raw)
	aead, _ := cipher.NewGCM(block)
	nonce := append([]byte(magic), "\x00\x00\x00\x01...."...) // the worst that chance could make of it
	old := aead.Seal(nonce, nonce, []byte("authority"), []byte("ca"))
	r, err := Open(path, false)
	if err != nil {
		t.Fatal(err)
	}
	if plain, err := r.Unseal("ca", old); err != nil || string(plain) != "authority" {
		t.Fatalf("%q %v", plain, err)
	}
	if _, err := r.Add(); err != nil {
		t.Fatal(err)
	}
	if plain, err := r.Unseal("ca", old); err != nil || string(plain) != "authority" {
		t.Fatalf("after a second key: %q %v", plain, err)
	}
}

// TestRotation walks a ring through its life, with a second server that has the same file.
func TestRotation(t *testing.T) {
	t.Parallel()
	r := ringAt(t)
	other, err := Open(r.Path(), false)
	if err != nil {
		t.Fatal(err)
	}
	first, _ := r.Seal("x", []byte("1"))
	id, err := r.Add()
	if err != nil || id != 2 || r.Current() != 1 {
		t.Fatalf("id %d, current %d, %v", id, r.Current(), err)
	}
	if err := r.Use(id); err != nil {
		t.Fatal(err)
	}
	second, _ := r.Seal("x", []byte("2"))
	if KeyOf(first) != 1 || KeyOf(second) != 2 {
		t.Fatalf("under %d and %d", KeyOf(first), KeyOf(second))
	}
	if plain, err := other.Unseal("x", second); err != nil || string(plain) != "2" {
		t.Fatalf("the other server: %q %v", plain, err)
	}
	if gone, err := r.Drop(); err != nil || len(gone) != 1 || gone[0] != 1 {
		t.Fatalf("dropped %v, %v", gone, err)
	}
	if _, err := r.Unseal("x", first); err == nil || !strings.Contains(err.Error(), "key 1, which") {
		t.Fatalf("a text under a dropped key: %v", err)
	}
	if st, err := os.Stat(r.Path()); err != nil || st.Mode().Perm() != 0o600 {
		t.Fatalf("%v %v", st, err)
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(r.Path()), ".seal-*")); err != nil || len(left) > 0 {
		t.Fatalf("left behind: %v %v", left, err)
	}
	if err := r.Use(7); err == nil {
		t.Error("a key that is not there is used")
	}
}

// TestNothingPrintsAKey: neither formats, logs nor errors show the bytes of a key.
func TestNothingPrintsAKey(t *testing.T) {
	t.Parallel()
	r := ringAt(t)
	text, err := os.ReadFile(r.Path())
	if err != nil {
		t.Fatal(err)
	}
	line := strings.Fields(strings.Split(strings.TrimSpace(string(text)), "\n")[1])
	raw := r.keys.Load().current.bytes[:]
	var b bytes.Buffer
	slog.New(slog.NewTextHandler(&b, nil)).Info("x", "ring", r, "key", r.keys.Load().current)
	fmt.Fprintf(&b, "%v %+v %#v %s %v %#v %x", r, r, r, r, r.keys.Load().current, r.keys.Load().current, r)
	for _, bad := range []string{line[1] + "zz", line[1][:63], line[1] + " " + line[1]} {
		if _, err := parse("ring", []byte(bad)); err == nil {
			t.Errorf("%q passes", bad)
		} else {
			b.WriteString(err.Error())
		}
	}
	if strings.Contains(b.String(), line[1][:16]) || strings.Contains(b.String(), string(raw)) ||
		strings.Contains(b.String(), fmt.Sprint(raw[:4])[1:10]) {
		t.Fatalf("a key is shown:\n%s", b.String())
	}
}

// TestFileOthersCanRead: a key that every user can read protects nothing.
func TestFileOthersCanRead(t *testing.T) {
	t.Parallel()
	r := ringAt(t)
	if err := os.Chmod(r.Path(), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(r.Path(), false); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Fatal(err)
	}
}

func BenchmarkPack(b *testing.B) {
	r, err := Open(filepath.Join(b.TempDir(), "seal.key"), true)
	if err != nil {
		b.Fatal(err)
	}
	plain, buf := make([]byte, 16<<10), make([]byte, 0, 32<<10)
	b.SetBytes(int64(len(plain)))
	for b.Loop() {
		if _, _, err := r.Append(buf, "pack/1", plain); err != nil {
			b.Fatal(err)
		}
	}
}

// Processes that make keys at the same time lose none of them: what is sealed with one of them would be lost with it.
func TestKeysMadeAtTheSameTime(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "seal.key")
	const processes, each = 8, 5
	var made sync.WaitGroup
	sealed := make(chan []byte, processes*each)
	for range processes {
		made.Go(func() {
			r, err := Open(path, true) // the first one makes the file, the others find it whole
			if err != nil {
				t.Error(err)
				return
			}
			for range each {
				id, err := r.Add()
				if err == nil {
					err = r.Use(id)
				}
				if err != nil {
					t.Error(err)
					return
				}
				b, err := r.Seal("x", []byte("secret"))
				if err != nil {
					t.Error(err)
					return
				}
				sealed <- b
			}
		})
	}
	made.Wait()
	close(sealed)
	r, err := Open(path, false)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(r.IDs()); n != 1+processes*each {
		t.Errorf("the file has %d keys", n)
	}
	for b := range sealed {
		if plain, err := r.Unseal("x", b); err != nil || string(plain) != "secret" {
			t.Errorf("sealed with key %d: %v", KeyOf(b), err)
		}
	}
}

// A file that a crash left half written holds keys; the next change takes it away. So it is with the first file.
func TestLeftOversOfACrash(t *testing.T) {
	t.Parallel()
	r := ringAt(t)
	left := filepath.Join(filepath.Dir(r.Path()), ".seal.key.new-123")
	if err := os.WriteFile(left, []byte("2 "), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Add(); err != nil {
		t.Fatal(err)
	}
	list, err := os.ReadDir(filepath.Dir(r.Path()))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		if e.Name() != "seal.key" {
			t.Errorf("%s is left", e.Name())
		}
	}
}

// The file is replaced, not written to: one that its owner may only read is locked and changed all the same.
func TestKeyInAReadOnlyFile(t *testing.T) {
	t.Parallel()
	r := ringAt(t)
	if err := os.Chmod(r.Path(), 0o400); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Add(); err != nil || len(r.IDs()) != 2 {
		t.Errorf("%d keys, %v", len(r.IDs()), err)
	}
}
