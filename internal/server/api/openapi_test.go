package api

import (
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"bireme.dev/bireme/internal/server/api/call"
	"bireme.dev/bireme/internal/server/api/metrics"
)

func TestEveryRouteIsInTheDocumentAndViceVersa(t *testing.T) {
	t.Parallel()
	a := &API{}
	a.metrics = metrics.New(&call.Base{}, nil, nil)
	a.routes = a.table()
	a.mux = a.newMux()
	text, err := json.Marshal(a.document())
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		OpenAPI    string                            `json:"openapi"`
		Paths      map[string]map[string]operation   `json:"paths"`
		Components map[string]map[string]interface{} `json:"components"`
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(doc.OpenAPI, "3.1") {
		t.Errorf("version %q", doc.OpenAPI)
	}
	count, ids := 0, map[string]bool{}
	for path, item := range doc.Paths {
		for method, op := range item {
			count++
			req, err := http.NewRequest(strings.ToUpper(method), regexp.MustCompile(`\{\w+\}`).ReplaceAllString(path, "x"), nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, pattern := a.mux.Handler(req); pattern != strings.ToUpper(method)+" "+path {
				t.Errorf("%s %s is answered by %q", method, path, pattern)
			}
			if ids[op.OperationID] || op.Summary == "" {
				t.Errorf("%s %s: id %q, summary %q", method, path, op.OperationID, op.Summary)
			}
			ids[op.OperationID] = true
		}
	}
	native := 0
	for _, rt := range a.routes {
		if !rt.Native {
			continue
		}
		native++
		if _, ok := doc.Paths[rt.Path][strings.ToLower(rt.Method)]; !ok {
			t.Errorf("%s %s is not in the document", rt.Method, rt.Path)
		}
	}
	if count != native {
		t.Errorf("%d operations for %d routes", count, native)
	}
	for _, ref := range regexp.MustCompile(`"#/components/schemas/(\w+)"`).FindAllStringSubmatch(string(text), -1) {
		if _, ok := doc.Components["schemas"][ref[1]]; !ok {
			t.Errorf("schema %s is used and not there", ref[1])
		}
	}
	// Names that clients were generated from stay; new ones are added to the file.
	published, err := os.ReadFile(filepath.Join("testdata", "schemas.txt"))
	if err != nil {
		t.Fatal(err)
	}
	names := slices.Sorted(maps.Keys(doc.Components["schemas"]))
	if got := strings.Join(names, "\n") + "\n"; got != string(published) {
		t.Errorf("the schemas' names are\n%swant those of testdata/schemas.txt", got)
	}
	job := doc.Components["schemas"]["Job"].(map[string]any)["properties"].(map[string]any)
	for _, name := range []string{"id", "spec", "alloc", "waiting", "why"} {
		if job[name] == nil {
			t.Errorf("Job lacks %s", name)
		}
	}
}

type operation struct {
	Summary     string `json:"summary"`
	OperationID string `json:"operationId"`
}
