package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
)

// KeyID numbers the keys of a ring. 0 is no key: what is under it is not sealed.
type KeyID uint32

// Ring seals and opens. It is safe for concurrent use.
type Ring struct {
	using sync.RWMutex // read: the present key stays it; see Hold
	path  string
	mu    sync.Mutex // one change of the file at a time
	keys  atomic.Pointer[keys]
}

// keys is what a ring holds; it is replaced, never changed.
type keys struct {
	list    []*key // ascending id
	current *key
}

type key struct {
	id    KeyID
	bytes [keySize]byte
	x     *xaes
	old   cipher.AEAD // plain AES-256-GCM: texts from before there were rings
}

// String keeps the key's bytes out of whatever prints a ring.
func (k *key) String() string { return fmt.Sprintf("seal key %d", k.id) }

// GoString is String for %#v.
func (k *key) GoString() string { return k.String() }

// LogValue is String for logs.
func (k *key) LogValue() slog.Value { return slog.StringValue(k.String()) }

// String names the file and the keys by id.
func (r *Ring) String() string {
	var ids []string
	for _, id := range r.IDs() {
		ids = append(ids, fmt.Sprint(id))
	}
	return fmt.Sprintf("ring of seal keys %s in %s", strings.Join(ids, ", "), r.path)
}

// GoString is String for %#v.
func (r *Ring) GoString() string { return r.String() }

// LogValue is String for logs.
func (r *Ring) LogValue() slog.Value { return slog.StringValue(r.String()) }

func newKey(id KeyID, b []byte) (*key, error) {
	k := &key{id: id}
	copy(k.bytes[:], b)
	block, err := aes.NewCipher(k.bytes[:])
	if err != nil {
		return nil, err
	}
	if k.old, err = cipher.NewGCM(block); err != nil {
		return nil, err
	}
	k.x, err = newXAES(k.bytes[:])
	return k, err
}

// header starts every sealed text: four bytes that say so, then the key's id.
const (
	magic      = "\xb1sl2"
	headerSize = len(magic) + 4
)

// Overhead is how many bytes longer a sealed text is.
const Overhead = headerSize + nonceSize + tagSize

func (ks *keys) find(id KeyID) *key {
	for _, k := range ks.list {
		if k.id == id {
			return k
		}
	}
	return nil
}

// Seal closes a secret under a name; only Unseal under the same name opens it.
func (r *Ring) Seal(name string, plain []byte) ([]byte, error) {
	b, _, err := r.Append(make([]byte, 0, len(plain)+Overhead), name, plain)
	return b, err
}

// Append seals plain under the current key, appends that to dst, and tells which key it was.
func (r *Ring) Append(dst []byte, name string, plain []byte) ([]byte, int64, error) {
	k := r.keys.Load().current
	dst = binary.BigEndian.AppendUint32(append(dst, magic...), uint32(k.id))
	dst, err := k.x.seal(dst, plain, []byte(name))
	if err != nil {
		return nil, 0, fmt.Errorf("seal %s: %w", name, err)
	}
	return dst, int64(k.id), nil
}

// KeyOf returns which key a sealed text is under; 0: one from before there were rings, which does not say.
func KeyOf(sealed []byte) KeyID {
	if len(sealed) < headerSize || string(sealed[:len(magic)]) != magic {
		return 0
	}
	return KeyID(binary.BigEndian.Uint32(sealed[len(magic):]))
}

// Fresh reports whether a sealed text is under the current key.
func (r *Ring) Fresh(sealed []byte) bool { return KeyOf(sealed) == r.Current() }

// Unseal opens what Seal closed. A text under a key that the ring does not know has the file read again: another server
// may have made the key.
func (r *Ring) Unseal(name string, sealed []byte) ([]byte, error) {
	id := KeyOf(sealed)
	ks := r.keys.Load()
	if id != 0 && ks.find(id) == nil {
		if err := r.Reload(); err != nil {
			return nil, fmt.Errorf("unseal %s: %w", name, err)
		}
		ks = r.keys.Load()
	}
	if k := ks.find(id); k != nil {
		if plain, err := k.x.open(sealed[headerSize:], []byte(name)); err == nil {
			return plain, nil
		}
	}
	for _, k := range ks.list { // the nonce of an old text may look like a header
		n := k.old.NonceSize()
		if len(sealed) < n {
			break
		}
		if plain, err := k.old.Open(nil, sealed[:n], sealed[n:], []byte(name)); err == nil {
			return plain, nil
		}
	}
	if id != 0 && ks.find(id) == nil {
		return nil, fmt.Errorf("unseal %s: it is under key %d, which %s does not have", name, id, r.path)
	}
	return nil, fmt.Errorf("unseal %s: no key in %s opens it", name, r.path)
}

// Hold keeps the present key the present one until release is called: for what is sealed and stored by itself.
func (r *Ring) Hold() (release func()) {
	r.using.RLock()
	return r.using.RUnlock
}

// Current is the key that new texts are under.
func (r *Ring) Current() KeyID { return r.keys.Load().current.id }

// IDs lists the keys, oldest first.
func (r *Ring) IDs() []KeyID {
	var ids []KeyID
	for _, k := range r.keys.Load().list {
		ids = append(ids, k.id)
	}
	return ids
}

// Path is the ring's file.
func (r *Ring) Path() string { return r.path }
