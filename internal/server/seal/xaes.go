package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/subtle"
	"errors"
)

const (
	keySize   = 32
	nonceSize = 24
	tagSize   = 16
)

var errOpen = errors.New("the key does not open it, or it was changed")

// xaes is XAES-256-GCM as c2sp.org/XAES-256-GCM defines it: the first half of the nonce derives a key by AES-CMAC, and
// the second half is the nonce of AES-256-GCM under that key.
type xaes struct {
	block cipher.Block
	k1    [aes.BlockSize]byte // CMAC's first subkey
}

func newXAES(key []byte) (*xaes, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	x := &xaes{block: block}
	block.Encrypt(x.k1[:], x.k1[:])
	var high byte
	for i := len(x.k1) - 1; i >= 0; i-- {
		x.k1[i], high = x.k1[i]<<1|high, x.k1[i]>>7
	}
	x.k1[len(x.k1)-1] ^= byte(subtle.ConstantTimeSelect(int(high), 0x87, 0))
	return x, nil
}

func (x *xaes) derive(nonce []byte) (cipher.AEAD, error) {
	var key [keySize]byte
	for i := range 2 {
		half := key[i*aes.BlockSize : (i+1)*aes.BlockSize]
		copy(half, []byte{0, byte(i + 1), 'X', 0})
		copy(half[4:], nonce[:12])
		subtle.XORBytes(half, half, x.k1[:])
		x.block.Encrypt(half, half)
	}
	block, err := aes.NewCipher(key[:])
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// seal appends nonce and ciphertext to dst.
func (x *xaes) seal(dst, plain, name []byte) ([]byte, error) {
	at := len(dst)
	dst = append(dst, make([]byte, nonceSize)...)
	if _, err := rand.Read(dst[at:]); err != nil {
		return nil, err
	}
	nonce := dst[at : at+nonceSize]
	aead, err := x.derive(nonce)
	if err != nil {
		return nil, err
	}
	return aead.Seal(dst, nonce[12:], plain, name), nil
}

func (x *xaes) open(sealed, name []byte) ([]byte, error) {
	if len(sealed) < nonceSize+tagSize {
		return nil, errOpen
	}
	aead, err := x.derive(sealed[:nonceSize])
	if err != nil {
		return nil, err
	}
	plain, err := aead.Open(nil, sealed[12:nonceSize], sealed[nonceSize:], name)
	if err != nil {
		return nil, errOpen
	}
	return plain, nil
}
