package wire

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// The kinds of things that have an id.
const (
	KindUser       = "user"
	KindProject    = "project"
	KindMember     = "member"
	KindFleet      = "fleet"
	KindInstance   = "instance"
	KindRun        = "run"
	KindJob        = "job"
	KindSubmission = "submission"
	KindSecret     = "secret"
	KindVolume     = "volume"
	KindArchive    = "archive"
	KindPublicKey  = "public_key"
	KindEvent      = "event"
)

// namespace keeps these ids apart from other hashes of the same names. It never changes: clients store ids.
const namespace = "bireme.dev/dstack/id/v1"

// UUID is the id that clients see of a thing, derived from its kind and its own id or name. It has the form of a random
// UUID (version 4): clients refuse others.
func UUID(kind, id string) string {
	h := sha256.New()
	h.Write([]byte(namespace + "\x00" + kind + "\x00" + id))
	b := h.Sum(nil)[:16]
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	var out [36]byte
	hex.Encode(out[0:8], b[0:4])
	hex.Encode(out[9:13], b[4:6])
	hex.Encode(out[14:18], b[6:8])
	hex.Encode(out[19:23], b[8:10])
	hex.Encode(out[24:36], b[10:16])
	out[8], out[13], out[18], out[23] = '-', '-', '-', '-'
	return string(out[:])
}

// IsUUID reports whether a text has the form of a UUID.
func IsUUID(text string) bool {
	if len(text) != 36 {
		return false
	}
	for i := range len(text) {
		switch i {
		case 8, 13, 18, 23:
			if text[i] != '-' {
				return false
			}
		default:
			if !strings.ContainsRune("0123456789abcdefABCDEF", rune(text[i])) {
				return false
			}
		}
	}
	return true
}
