package client

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// DefaultSocket is where an installed server listens for local callers, AgentSocket where a node's agent does: its
// directory is root's, the other one the server's own user's.
const (
	DefaultSocket = "/run/bireme/bireme.sock"
	AgentSocket   = "/run/bireme-agent/bireme.sock"
)

// defaultServer is the server of callers who name none: that of this machine, or the one its agent passes calls on to.
func defaultServer() string {
	if _, err := os.Lstat(DefaultSocket); err != nil {
		if _, err := os.Lstat(AgentSocket); err == nil {
			return "unix:" + AgentSocket
		}
	}
	return "unix:" + DefaultSocket
}

// DefaultTimeout bounds how long a call is tried again.
const DefaultTimeout = 30 * time.Second

// Settings say which cluster to call and as whom.
type Settings struct {
	Servers []string // "unix:PATH", "https://…", "http+insecure://…"; tried in turn
	CA      string   // PEM file to trust; empty: the system's
	Token   string
	Project string // project of new runs, if the user names none
	Timeout time.Duration
}

// String keeps the token out of whatever prints a Settings.
func (s Settings) String() string { return "settings for " + strings.Join(s.Servers, ", ") }

// GoString is String for %#v.
func (s Settings) GoString() string { return s.String() }

// SettingsFromEnv reads BIREME_SERVER, BIREME_CA, BIREME_TOKEN, BIREME_PROJECT and BIREME_TIMEOUT, and fills what they
// leave open from the user's config file. A server given by the environment never gets the token of the file:
// the file's token belongs to the file's server.
func SettingsFromEnv() (Settings, error) {
	s := Settings{
		Servers: SplitServers(os.Getenv("BIREME_SERVER")),
		CA:      os.Getenv("BIREME_CA"),
		Token:   os.Getenv("BIREME_TOKEN"),
		Project: os.Getenv("BIREME_PROJECT"),
	}
	var err error
	if s.Timeout, err = TimeoutFromEnv(); err != nil {
		return s, err
	}
	if len(s.Servers) == 0 || s.Project == "" {
		if err := s.fromFile(ConfigPath()); err != nil {
			return s, err
		}
	}
	if s.Token == "" {
		s.Token = os.Getenv("SLURM_JWT") // scontrol token's
	}
	return s, nil
}

// ConfigPath is the user's config file: BIREME_CONFIG, or config.yml in the user's config directory.
func ConfigPath() string {
	if p := os.Getenv("BIREME_CONFIG"); p != "" {
		return p
	}
	dir := os.Getenv("XDG_CONFIG_HOME")
	if dir == "" {
		home := os.Getenv("HOME")
		if home == "" {
			return ""
		}
		dir = filepath.Join(home, ".config")
	}
	return filepath.Join(dir, "bireme", "config.yml")
}

// TimeoutFromEnv is BIREME_TIMEOUT, or the default.
func TimeoutFromEnv() (time.Duration, error) {
	text := os.Getenv("BIREME_TIMEOUT")
	if text == "" {
		return DefaultTimeout, nil
	}
	return parseTimeout(text)
}

func parseTimeout(text string) (time.Duration, error) {
	if n, err := strconv.Atoi(text); err == nil && n >= 0 {
		return time.Duration(n) * time.Second, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("BIREME_TIMEOUT=%q: want seconds, or a duration such as 500ms", text)
	}
	return d, nil
}

// SplitServers takes a list of servers apart at its commas: a socket's path may hold spaces.
func SplitServers(text string) []string {
	var out []string
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}

// fromFile reads the few flat keys of the config file. It is a hand-made reader of that subset of YAML (key: value,
// and a list of servers), because a YAML library would double what a command costs to start.
func (s *Settings) fromFile(path string) error {
	if path == "" {
		return nil
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) || len(s.Servers) > 0 && errors.Is(err, fs.ErrPermission) {
		return nil // with another's HOME, as after su, the environment alone must do
	}
	if err != nil {
		return fmt.Errorf("read settings: %w", err)
	}
	defer f.Close()
	var file Settings
	list := false
	sc := bufio.NewScanner(f)
	for n := 1; sc.Scan(); n++ {
		line := strings.TrimRight(sc.Text(), " \t\r")
		text := strings.TrimSpace(line)
		if text == "" || text[0] == '#' || text == "---" {
			continue
		}
		if item, ok := strings.CutPrefix(text, "- "); ok && list {
			file.Servers = append(file.Servers, SplitServers(scalar(item))...)
			continue
		}
		list = false
		key, value, ok := strings.Cut(text, ":")
		if !ok {
			return fmt.Errorf("%s: line %d: want key: value", path, n)
		}
		if line[0] == ' ' || line[0] == '\t' {
			continue // below a key that is not ours
		}
		value = scalar(value)
		switch strings.TrimSpace(key) {
		case "server", "servers":
			value = strings.Trim(value, "[]")
			file.Servers, list = SplitServers(value), value == ""
		case "ca":
			file.CA = value
		case "token":
			file.Token = value
		case "project":
			file.Project = value
		}
	}
	if err := sc.Err(); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	if len(s.Servers) == 0 {
		s.Servers = file.Servers
		if s.CA == "" {
			s.CA = file.CA
		}
		if s.Token == "" {
			s.Token = file.Token
		}
	}
	if s.Project == "" {
		s.Project = file.Project
	}
	return nil
}

// scalar strips blanks, quotes and a trailing comment.
func scalar(text string) string {
	text = strings.TrimSpace(text)
	if len(text) >= 2 && (text[0] == '"' || text[0] == '\'') {
		if end := strings.IndexByte(text[1:], text[0]); end >= 0 {
			return text[1 : 1+end]
		}
	}
	if i := strings.Index(text, " #"); i >= 0 {
		text = text[:i]
	}
	return strings.TrimSpace(text)
}
