package mailto

import (
	"slices"
	"strings"

	"bireme.dev/bireme/internal/core"
)

// kinds are the words of --mail-type, in Slurm's spelling.
var kinds = []string{
	"NONE", "BEGIN", "END", "FAIL", "REQUEUE", "ALL", "INVALID_DEPEND", "STAGE_OUT", "TIME_LIMIT", "TIME_LIMIT_90",
	"TIME_LIMIT_80", "TIME_LIMIT_50", "ARRAY_TASKS",
}

// maxAddresses bounds the addresses that one job writes to.
const maxAddresses = 8

// Check refuses what mail is to be sent about and to whom unless both are of a written list of forms: the mail
// program must never take an address for an option, a file, a command or a second header.
func Check(types, to string) error {
	if types != "" {
		for w := range strings.SplitSeq(types, ",") {
			if !slices.Contains(kinds, w) {
				return core.Errorf(core.Invalid, "mail_types: %.80q: expected one of %s", w, strings.Join(kinds, ", ")).
					Because("invalid_mail_type")
			}
		}
	}
	if to == "" {
		return nil
	}
	list := strings.Split(to, ",")
	if len(list) > maxAddresses {
		return core.Errorf(core.Invalid, "mail_user: %d addresses exceed the limit of %d", len(list), maxAddresses).Because(
			"invalid_mail_user")
	}
	for _, a := range list {
		if !IsAddress(a) {
			return core.Errorf(core.Invalid, "mail_user: %.80q is not an address: a name of letters, digits and . _ + - that "+
				"begins with a letter or digit, "+
				"alone or with @ and a host's name", a).Because("invalid_mail_user")
		}
	}
	return nil
}

// IsAddress reports whether a text is NAME or NAME@HOST. It is stricter than RFC 5321: no quotes, no /, |, !, % or
// :, which mail programs take for files, commands and routes.
func IsAddress(text string) bool {
	name, host, at := strings.Cut(text, "@")
	if name == "" || len(name) > 64 || len(text) > 254 || !letterOrDigit(name[0]) && name[0] != '_' ||
		strings.Contains(name, "..") || strings.HasSuffix(name, ".") {
		return false
	}
	for i := range len(name) {
		if c := name[i]; !letterOrDigit(c) && !strings.ContainsRune("._+-=", rune(c)) {
			return false
		}
	}
	if !at {
		return true
	}
	for label := range strings.SplitSeq(host, ".") {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		for i := range len(label) {
			if c := label[i]; !letterOrDigit(c) && c != '-' {
				return false
			}
		}
	}
	return true
}

func letterOrDigit(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}
