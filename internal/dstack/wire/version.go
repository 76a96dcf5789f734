package wire

import (
	"fmt"
	"strconv"
	"strings"
)

// Speaks is the release of dstack whose API this is. It is told to clients as the server's version.
const Speaks = "0.22.5"

// Version is a client's release. The zero value is a client that did not say: it is taken to be the newest.
type Version struct {
	text                string
	major, minor, patch int
}

// ParseVersion reads the header X-API-VERSION. No text, "latest" and development builds (0.0.0…) are the newest client.
func ParseVersion(text string) (Version, error) {
	v := Version{text: text}
	if text == "" || text == "latest" || strings.HasPrefix(text, "0.0.0") {
		return Version{}, nil
	}
	parts := strings.SplitN(strings.TrimPrefix(text, "v"), ".", 3)
	for i, into := range []*int{&v.major, &v.minor, &v.patch} {
		if i >= len(parts) {
			break
		}
		digits := parts[i]
		if n := strings.IndexFunc(digits, func(r rune) bool { return r < '0' || r > '9' }); n >= 0 && i == len(parts)-1 {
			if suffix := digits[n:]; n > 0 && !isSuffix(suffix) || n == 0 {
				return Version{}, fmt.Errorf("Invalid version: %.40s", text)
			}
			digits = digits[:n]
		}
		n, err := strconv.Atoi(digits)
		if err != nil || len(digits) > 6 {
			return Version{}, fmt.Errorf("Invalid version: %.40s", text)
		}
		*into = n
	}
	return v, nil
}

// isSuffix reports whether what follows a release's numbers is a further number, a pre-release, or a build.
func isSuffix(text string) bool {
	text = strings.TrimLeft(text, ".-_+")
	for _, r := range text {
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '.' {
			return false
		}
	}
	return text != ""
}

// IsNewest reports whether the client did not say a release.
func (v Version) IsNewest() bool { return v.text == "" }

// String is the release as the client said it.
func (v Version) String() string {
	if v.text == "" {
		return "unknown"
	}
	return v.text
}

// Before reports whether the client is older than a release.
func (v Version) Before(major, minor, patch int) bool {
	if v.IsNewest() {
		return false
	}
	switch {
	case v.major != major:
		return v.major < major
	case v.minor != minor:
		return v.minor < minor
	}
	return v.patch < patch
}

// Newer reports whether the client is of a later release series than Speaks: it may send what this server does not
// know.
func (v Version) Newer() bool { return !v.IsNewest() && !v.Before(speaks.major, speaks.minor+1, 0) }

// Incompatible reports whether the client is of a later major release, which no server of this one serves.
func (v Version) Incompatible() bool { return !v.IsNewest() && v.major > speaks.major }

var speaks = func() Version {
	v, err := ParseVersion(Speaks)
	if err != nil {
		panic(err)
	}
	return v
}()
