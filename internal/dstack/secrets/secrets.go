package secrets

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/dstack/config"
)

// prefix begins the name of a variable that is a secret.
const prefix = "secrets."

// reference is in every value that names a variable.
const reference = "${{"

// Names lists the secrets that an environment, NUL-separated KEY=VALUE, names; each once, sorted.
func Names(env []byte) ([]string, error) {
	var names []string
	_, err := Resolve(env, func(name string) (string, bool) {
		names = append(names, name)
		return "", true
	})
	slices.Sort(names)
	return slices.Compact(names), err
}

// Resolve gives an environment with secrets in the place of their names. One without any is returned as it is. A value
// without a reference stays as it is, also with $$ in it.
func Resolve(env []byte, secret func(name string) (value string, ok bool)) ([]byte, error) {
	if !bytes.Contains(env, []byte(reference)) {
		return env, nil
	}
	out := make([]byte, 0, len(env)+64)
	for one := range bytes.SplitSeq(env, []byte{0}) {
		name, value, ok := strings.Cut(string(one), "=")
		if !ok {
			continue
		}
		value, err := resolve(name, value, secret)
		if err != nil {
			return nil, err
		}
		out = append(append(append(append(out, name...), '='), value...), 0)
	}
	return out, nil
}

// resolve completes one value. What a registry is told is JSON: a secret must not end its text.
func resolve(name, value string, secret func(string) (string, bool)) (string, error) {
	if !strings.Contains(value, reference) {
		return value, nil
	}
	if name != core.RegistryAuth {
		text, err := expand(value, secret)
		if err != nil {
			return "", fmt.Errorf("env.%s: %w", name, err)
		}
		return text, nil
	}
	var login map[string]string
	if err := json.Unmarshal([]byte(value), &login); err != nil {
		return "", fmt.Errorf("registry_auth: not as it should be") // its text may be a secret
	}
	for key := range login {
		text, err := expand(login[key], secret)
		if err != nil {
			return "", fmt.Errorf("registry_auth.%s: %w", key, err)
		}
		login[key] = text
	}
	text, err := json.Marshal(login)
	return string(text), err
}

func expand(value string, secret func(string) (string, bool)) (string, error) {
	if !strings.Contains(value, reference) {
		return value, nil
	}
	return config.Expand(value, func(name string) (string, bool, error) {
		key, ok := strings.CutPrefix(name, prefix)
		if !ok {
			return "", false, fmt.Errorf("${{ %s }}: only secrets are known here", name)
		}
		text, ok := secret(key)
		if !ok {
			return "", false, fmt.Errorf("the project has no secret %q", key)
		}
		if strings.ContainsRune(text, 0) {
			return "", false, fmt.Errorf("secret %q has a NUL byte, which no variable can have", key)
		}
		return text, false, nil
	})
}
