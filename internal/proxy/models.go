package proxy

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"bireme.dev/bireme/internal/core"
)

// maxChat bounds a chat request, which is read to know for which model it is.
const maxChat = 16 << 20

// maxChats bounds what all of them take together.
const maxChats = 512 << 20

// modelPath is where a model's service answers chat requests. Servers of the format tgi answer them there since their
// version 1.4, so that they need no conversion.
func modelPath(m *core.ServiceModel) string {
	prefix := m.Prefix
	if m.Format == "tgi" || prefix == "" {
		prefix = "/v1"
	}
	return "/" + strings.Trim(prefix, "/") + "/chat/completions"
}

// serveModels answers what OpenAI's clients ask below PathModels + PROJECT.
func (p *Proxy) serveModels(w http.ResponseWriter, r *http.Request, rest string) {
	project, path, _ := strings.Cut(rest, "/")
	path = strings.TrimPrefix(path, "v1/")
	switch {
	case path == "models" && r.Method == http.MethodGet:
		if err := p.cfg.See(r, core.ProjectName(project)); err != nil {
			refuseError(w, err)
			return
		}
		p.listModels(w, core.ProjectName(project))
	case path == "chat/completions" && r.Method == http.MethodPost:
		p.chat(w, r, core.ProjectName(project))
	case path == "models", path == "chat/completions":
		refuse(w, http.StatusMethodNotAllowed, "Method Not Allowed")
	default:
		refuse(w, http.StatusNotFound, "Not Found")
	}
}

type modelEntry struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
}

func (p *Proxy) listModels(w http.ResponseWriter, project core.ProjectName) {
	list := []modelEntry{}
	p.mu.Lock()
	for _, s := range p.byID {
		if s.Project == project && s.Model != nil {
			list = append(list, modelEntry{ID: s.Model.Name, Object: "model", OwnedBy: string(s.Name)})
		}
	}
	p.mu.Unlock()
	slices.SortFunc(list, func(a, b modelEntry) int {
		return cmp.Or(strings.Compare(a.ID, b.ID), strings.Compare(a.OwnedBy, b.OwnedBy))
	})
	body, err := json.Marshal(map[string]any{"object": "list", "data": list})
	if err != nil {
		refuse(w, http.StatusInternalServerError, "the list cannot be written")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body) // a client that left does not read it
}

// chat passes a chat request on to the service of the model that it names. Of several the one whose name comes first
// answers. The body is read only for who may see the project's models.
func (p *Proxy) chat(w http.ResponseWriter, r *http.Request, project core.ProjectName) {
	if err := p.cfg.See(r, project); err != nil {
		refuseError(w, err)
		return
	}
	size := int64(maxChat)
	if r.ContentLength >= 0 {
		size = min(size, r.ContentLength)
	}
	if p.chats.Add(size) > maxChats {
		p.chats.Add(-size)
		w.Header().Set("Retry-After", "1")
		refuse(w, http.StatusServiceUnavailable, "too many chat requests at once")
		return
	}
	defer p.chats.Add(-size)
	out := &answer{ResponseWriter: w, idle: p.cfg.Limits.Idle, control: http.NewResponseController(w)}
	body, err := io.ReadAll(&upload{ReadCloser: http.MaxBytesReader(w, r.Body, maxChat), out: out})
	out.end()
	if err != nil {
		failed(w, r, err)
		return
	}
	var ask struct {
		Model string `json:"model"`
	}
	if err := json.Unmarshal(body, &ask); err != nil || ask.Model == "" {
		refuse(w, http.StatusBadRequest,
			`the request must be JSON with the name of a model: {"model": "NAME", "messages": [...]}`)
		return
	}
	var best *route
	p.mu.Lock()
	for _, s := range p.byID {
		if s.Project == project && s.Model != nil && s.Model.Name == ask.Model && (best == nil || s.Name < best.Name) {
			best = s
		}
	}
	p.mu.Unlock()
	if best == nil {
		refuse(w, http.StatusNotFound, fmt.Sprintf("Model %.200s not found", ask.Model))
		return
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	p.serve(w, r, best, "", modelPath(best.Model))
}
