package docker

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
)

// Image is what an engine knows of an image.
type Image struct {
	ID          string
	RepoDigests []string
	RepoTags    []string
	Created     string
	Size        int64
	Config      struct {
		User       string
		Env        []string
		Entrypoint []string
		Cmd        []string
		WorkingDir string
	}
}

// Digest names the image's content: as its registry does, else as the engine itself does.
func (i *Image) Digest() string {
	if len(i.RepoDigests) > 0 {
		return i.RepoDigests[0]
	}
	return i.ID
}

// Image looks at an image that the engine has.
func (c *Client) Image(ctx context.Context, ref string) (*Image, error) {
	i := new(Image)
	return i, c.call(ctx, http.MethodGet, "/images/"+ref+"/json", nil, i)
}

// Images lists the images that the engine has.
func (c *Client) Images(ctx context.Context) ([]Image, error) {
	var list []struct {
		ID          string `json:"Id"`
		RepoTags    []string
		RepoDigests []string
		Size        int64
	}
	if err := c.call(ctx, http.MethodGet, "/images/json", nil, &list); err != nil {
		return nil, err
	}
	out := make([]Image, len(list))
	for i, l := range list {
		out[i] = Image{ID: l.ID, RepoTags: l.RepoTags, RepoDigests: l.RepoDigests, Size: l.Size}
	}
	return out, nil
}

// RemoveImage removes an image by one of its names. One that a container uses stays, and one that is gone is no fault.
func (c *Client) RemoveImage(ctx context.Context, name string) error {
	err := c.call(ctx, http.MethodDelete, "/images/"+name, nil, nil)
	if isStatus(err, http.StatusNotFound) || isStatus(err, http.StatusConflict) {
		return nil
	}
	return err
}

// Auth is what a registry wants to know.
type Auth struct {
	Username string `json:"username"`
	Password string `json:"password"`
}

// String keeps the password out of whatever prints an Auth.
func (a Auth) String() string { return "login of " + a.Username }

// GoString is String for %#v.
func (a Auth) GoString() string { return a.String() }

// LogValue is String for logs.
func (a Auth) LogValue() slog.Value { return slog.StringValue(a.String()) }

// split cuts a reference into what `fromImage` and `tag` take.
func split(ref string) (name, tag string) {
	if name, digest, ok := strings.Cut(ref, "@"); ok {
		return name, digest
	}
	if i := strings.LastIndexByte(ref, ':'); i > strings.LastIndexByte(ref, '/') {
		return ref[:i], ref[i+1:]
	}
	return ref, "latest"
}

// registryOf is the host of a reference; without one it is Docker's own.
func registryOf(ref string) string {
	host, _, ok := strings.Cut(ref, "/")
	if !ok || !strings.ContainsAny(host, ".:") && host != "localhost" {
		return "https://index.docker.io/v1/"
	}
	return host
}

// Progress is how far a pull has come, over the layers known so far, in bytes.
type Progress struct {
	Done, Total int64 // as they are transferred
	Extracted   int64 // of Total
	Final       bool  // Total is that of all layers
}

// Pull fetches an image. progress is called with every change that the engine tells.
func (c *Client) Pull(ctx context.Context, ref string, auth *Auth, progress func(Progress)) error {
	name, tag := split(ref)
	header := http.Header{}
	if auth != nil {
		b, err := json.Marshal(struct {
			Auth
			Server string `json:"serveraddress"`
		}{*auth, registryOf(ref)})
		if err != nil {
			return err
		}
		header.Set("X-Registry-Auth", base64.URLEncoding.EncodeToString(b))
	}
	r, err := c.open(ctx, http.MethodPost, "/images/create?"+url.Values{"fromImage": {name}, "tag": {tag}}.Encode(),
		header, nil)
	if err != nil {
		return pullError(ref, auth, err)
	}
	defer r.Close()
	return pullError(ref, auth, follow(r, progress))
}

// layer is a part of an image that is pulled.
type layer struct {
	done, extracted, total int64
	known                  bool // its size is known, or there is nothing to fetch
}

// note takes what an engine says of a layer, and reports whether that is progress.
func (l *layer) note(status string, current, total int64) bool {
	switch status {
	case "Downloading":
		if total > 0 {
			l.done, l.total, l.known = current, total, true
		}
	case "Verifying Checksum", "Download complete":
		l.done = l.total
	case "Extracting":
		if l.done = l.total; total > 0 {
			l.extracted = min(current, l.total)
		}
	case "Pull complete":
		l.done, l.extracted, l.known = l.total, l.total, true
	case "Already exists":
		l.known = true
	default: // Pulling fs layer, Waiting
		return false
	}
	return true
}

// follow reads what an engine tells of a pull, to its end.
func follow(r io.Reader, progress func(Progress)) error {
	layers := map[string]*layer{}
	dec := json.NewDecoder(r)
	for {
		var m struct {
			ID     string `json:"id"`
			Status string `json:"status"`
			Error  string `json:"error"`
			Detail struct {
				Current int64 `json:"current"`
				Total   int64 `json:"total"`
			} `json:"progressDetail"`
		}
		err := dec.Decode(&m)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case m.Error != "":
			return &Error{Status: http.StatusInternalServerError, Message: m.Error}
		case progress == nil || m.ID == "" || strings.HasPrefix(m.Status, "Pulling from"):
			continue
		}
		l := layers[m.ID]
		if l == nil {
			l = new(layer)
			layers[m.ID] = l
		}
		if !l.note(m.Status, m.Detail.Current, m.Detail.Total) {
			continue
		}
		p := Progress{Final: true}
		for _, l := range layers {
			p.Done += l.done
			p.Total += l.total
			p.Extracted += l.extracted
			p.Final = p.Final && l.known
		}
		progress(p)
	}
}

// pullError says in one sentence why an image did not come. Registries have many words for two things.
func pullError(ref string, auth *Auth, err error) error {
	if err == nil || Away(err) || errors.Is(err, context.Canceled) {
		return err
	}
	text := strings.ToLower(err.Error())
	switch {
	case auth != nil && (strings.Contains(text, "unauthorized") || strings.Contains(text, "no basic auth") ||
		strings.Contains(text, "incorrect username or password")):
		return fmt.Errorf("image %s: the registry refused user %s: %w", ref, auth.Username, err)
	case strings.Contains(text, "unauthorized"), strings.Contains(text, "no basic auth"), strings.Contains(text, "denied"):
		return fmt.Errorf("image %s: the registry does not give it without registry_auth, or has no such image: %w", ref, err)
	case strings.Contains(text, "not found"), strings.Contains(text, "manifest unknown"):
		return fmt.Errorf("image %s: there is no such image: %w", ref, err)
	}
	return fmt.Errorf("image %s: %w", ref, err)
}
