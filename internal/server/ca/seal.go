package ca

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// sealer closes and opens small secrets. The name is bound to the content, so that one cannot pass for another.
type sealer struct{ aead cipher.AEAD }

// openSeal reads the key file; with create it makes one that is not there.
func openSeal(path string, create bool) (*sealer, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && create {
		text, err = makeKey(path)
	}
	if err != nil {
		return nil, fmt.Errorf("the sealing key: %w", err)
	}
	key := make([]byte, 32)
	if n, err := hex.Decode(key, bytes.TrimSpace(text)); err != nil || n != len(key) {
		return nil, fmt.Errorf("the sealing key in %s is not 64 hexadecimal digits", path)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("the sealing key: %w", err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, fmt.Errorf("the sealing key: %w", err)
	}
	return &sealer{aead: aead}, nil
}

// makeKey writes a new key to stable storage before it is used: a sealed CA without its key is lost.
func makeKey(path string) ([]byte, error) {
	key := make([]byte, 32)
	if _, err := rand.Read(key); err != nil {
		return nil, err
	}
	text := append(hex.AppendEncode(nil, key), '\n')
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	_, werr := f.Write(text)
	if err := errors.Join(werr, f.Sync(), f.Close()); err != nil {
		return nil, err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	return text, errors.Join(dir.Sync(), dir.Close())
}

func (s *sealer) close(name string, plain []byte) ([]byte, error) {
	nonce := make([]byte, s.aead.NonceSize())
	if _, err := rand.Read(nonce); err != nil {
		return nil, fmt.Errorf("seal %s: %w", name, err)
	}
	return s.aead.Seal(nonce, nonce, plain, []byte(name)), nil
}

func (s *sealer) open(name string, sealed []byte) ([]byte, error) {
	n := s.aead.NonceSize()
	if len(sealed) < n {
		return nil, fmt.Errorf("sealed %s is too short", name)
	}
	return s.aead.Open(nil, sealed[:n], sealed[n:], []byte(name))
}
