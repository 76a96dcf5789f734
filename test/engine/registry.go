package engine

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
)

// FakeRegistry is a registry in so far as an engine pulls one image from it: a stand-in for tests, without tags, pushes
// or tokens. It asks for a name and a password by HTTP's basic way.
type FakeRegistry struct {
	Host     string
	Username string // empty: everybody may pull
	Password string
	// Hold, if it is not nil, is waited for when half of a layer has been given.
	Hold chan struct{}

	server *httptest.Server
	blobs  map[string][]byte // by digest
	images map[string]string // digest of the manifest, by name:tag
	kinds  map[string]string // media types of manifests
}

// NewFakeRegistry starts one on loopback.
func NewFakeRegistry(username, password string) *FakeRegistry {
	r := &FakeRegistry{
		Username: username, Password: password, blobs: map[string][]byte{}, images: map[string]string{},
		kinds: map[string]string{},
	}
	r.server = httptest.NewServer(r)
	r.Host = r.server.Listener.Addr().String()
	return r
}

// Close ends it.
func (r *FakeRegistry) Close() { r.server.Close() }

// Add makes an image of one layer. It must be called before anybody pulls.
func (r *FakeRegistry) Add(name string, files []File) (ref string, err error) {
	layer, err := Tar(files)
	if err != nil {
		return "", err
	}
	put := func(b []byte) string {
		d := fmt.Sprintf("sha256:%x", sha256.Sum256(b))
		r.blobs[d] = b
		return d
	}
	diff := put(layer)
	config, err := json.Marshal(map[string]any{
		"architecture": "amd64", "os": "linux", "config": map[string]any{"Env": []string{"PATH=/bin"}},
		"rootfs":  map[string]any{"type": "layers", "diff_ids": []string{diff}},
		"history": []any{map[string]string{"created_by": "test"}},
	})
	if err != nil {
		return "", err
	}
	const kind = "application/vnd.docker.distribution.manifest.v2+json"
	manifest, err := json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": kind,
		"config": map[string]any{
			"mediaType": "application/vnd.docker.container.image.v1+json", "size": len(config),
			"digest": put(config),
		},
		"layers": []any{map[string]any{
			"mediaType": "application/vnd.docker.image.rootfs.diff.tar", "size": len(layer),
			"digest": diff,
		}},
	})
	if err != nil {
		return "", err
	}
	d := put(manifest)
	r.images[name], r.kinds[d] = d, kind
	return r.Host + "/" + name, nil
}

// Claim serves a manifest that names content of another registry's image, without having any of it.
func (r *FakeRegistry) Claim(name string, from *FakeRegistry, of string) (ref string, err error) {
	d := from.images[of]
	if d == "" {
		return "", fmt.Errorf("no image %s", of)
	}
	r.blobs[d], r.images[name], r.kinds[d] = from.blobs[d], d, from.kinds[d]
	return r.Host + "/" + name, nil
}

// ServeHTTP answers what a pull asks.
func (r *FakeRegistry) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	user, pass, ok := q.BasicAuth()
	if r.Username != "" && (!ok || user != r.Username || pass != r.Password) {
		w.Header().Set("Www-Authenticate", `Basic realm="fake registry"`)
		r.fail(w, http.StatusUnauthorized, "UNAUTHORIZED", "authentication required")
		return
	}
	path := strings.TrimPrefix(q.URL.Path, "/v2/")
	name, ref, isManifest := strings.Cut(path, "/manifests/")
	switch {
	case path == "":
		fmt.Fprint(w, "{}")
	case isManifest:
		d := ref
		if !strings.HasPrefix(d, "sha256:") {
			d = r.images[name+":"+ref]
		}
		if r.kinds[d] == "" {
			r.fail(w, http.StatusNotFound, "MANIFEST_UNKNOWN", "manifest unknown")
			return
		}
		w.Header().Set("Content-Type", r.kinds[d])
		w.Header().Set("Docker-Content-Digest", d)
		r.write(w, q, r.blobs[d])
	default:
		_, d, _ := strings.Cut(path, "/blobs/")
		if r.blobs[d] == nil {
			r.fail(w, http.StatusNotFound, "BLOB_UNKNOWN", "blob unknown")
			return
		}
		if hold, b := r.Hold, r.blobs[d]; hold != nil && q.Method != http.MethodHead {
			w.Header().Set("Content-Length", fmt.Sprint(len(b)))
			_, _ = w.Write(b[:len(b)/2])
			w.(http.Flusher).Flush()
			select {
			case <-hold:
				_, _ = w.Write(b[len(b)/2:])
			case <-q.Context().Done():
			}
			return
		}
		r.write(w, q, r.blobs[d])
	}
}

func (r *FakeRegistry) write(w http.ResponseWriter, q *http.Request, b []byte) {
	w.Header().Set("Content-Length", fmt.Sprint(len(b)))
	if q.Method != http.MethodHead {
		_, _ = w.Write(b) // an engine that goes away needs none
	}
}

func (r *FakeRegistry) fail(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"errors":[{"code":%q,"message":%q}]}`, code, message)
}
