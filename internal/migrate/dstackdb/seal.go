package dstackdb

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"strings"

	"go.yaml.in/yaml/v3"

	"bireme.dev/bireme/internal/core"
)

// Keys open sealed values, by their names.
type Keys map[string]cipher.AEAD

// ReadKeys reads the keys of a server's config.yml. Without such a file there are none.
func ReadKeys(file string) (Keys, error) {
	data, err := os.ReadFile(file)
	if os.IsNotExist(err) {
		return Keys{}, nil
	}
	if err != nil {
		return nil, err
	}
	var doc struct {
		Encryption struct {
			Keys []struct {
				Type   string `yaml:"type"`
				Name   string `yaml:"name"`
				Secret string `yaml:"secret"`
			} `yaml:"keys"`
		} `yaml:"encryption"`
	}
	if err := yaml.Unmarshal(data, &doc); err != nil {
		fault := strings.TrimPrefix(err.Error(), "yaml: ")
		var kinds *yaml.TypeError
		if errors.As(err, &kinds) { // it names types of this program
			fault = "it has no mapping with encryption.keys, a list of keys with type, name and secret"
		}
		return nil, core.Errorf(core.Invalid, "%s is not the config.yml of a dstack server: %s", file, fault)
	}
	keys := Keys{}
	for i, k := range doc.Encryption.Keys {
		if k.Type == "identity" {
			continue
		}
		where := fmt.Sprintf("%s: encryption.keys[%d]", file, i)
		if k.Type != "aes" {
			return nil, core.Errorf(core.Invalid, "%s: type: %q is not aes or identity", where, k.Type)
		}
		secret, err := base64.StdEncoding.DecodeString(k.Secret)
		if err != nil {
			return nil, core.Errorf(core.Invalid, "%s: secret: is not base64", where)
		}
		block, err := aes.NewCipher(secret)
		if err != nil {
			return nil, core.Errorf(core.Invalid, "%s: secret: has %d bytes, not 32", where, len(secret))
		}
		if keys[k.Name], err = cipher.NewGCM(block); err != nil {
			return nil, err
		}
	}
	return keys, nil
}

// open gives the text of a value: enc:identity:NAME:TEXT, enc:aes:NAME:BASE64 (nonce of 12 bytes, then what GCM
// sealed), or, as old servers wrote it, the text itself.
func (k Keys) open(value string) (string, error) {
	rest, sealed := strings.CutPrefix(value, "enc:")
	if !sealed {
		return value, nil
	}
	kind, rest, _ := strings.Cut(rest, ":")
	name, text, ok := strings.Cut(rest, ":")
	switch {
	case !ok:
		return "", fmt.Errorf("it is sealed in a way that is not known")
	case kind == "identity":
		return text, nil
	case kind != "aes":
		return "", fmt.Errorf("it is sealed by %q, not by aes or identity", kind)
	}
	key, ok := k[name]
	if !ok {
		return "", fmt.Errorf("it is sealed by the key %q, which config.yml does not have", name)
	}
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(data) < key.NonceSize() {
		return "", fmt.Errorf("it is sealed in a way that is not known")
	}
	plain, err := key.Open(nil, data[:key.NonceSize()], data[key.NonceSize():], nil)
	if err != nil {
		return "", fmt.Errorf("the key %q of config.yml does not open it", name)
	}
	return string(plain), nil
}
