package rest

import (
	"regexp"
	"strings"

	"bireme.dev/bireme/internal/slurm/schema"
)

type node = map[string]any

var pathParam = regexp.MustCompile(`\{(\w+)\}`)

// OpenAPI is the description of the API in all its versions, made from its table and those of the records.
func OpenAPI(release string) map[string]any {
	paths, schemas := node{}, node{}
	for _, v := range schema.REST() {
		for _, e := range Endpoints() {
			if !e.In(v) {
				continue
			}
			path := strings.Replace(e.Path, "{version}", v.String(), 1)
			if e.Slash {
				path += "/"
			}
			item, _ := paths[path].(node)
			if item == nil {
				item = node{}
				paths[path] = item
			}
			item[strings.ToLower(e.Method)] = operation(&e, v, schemas)
		}
	}
	return node{
		"openapi": "3.0.3",
		"info": node{
			"title": "Slurm REST API", "version": release,
			"description": "Served by Bireme for clients of slurmrestd.",
		},
		"servers":  []node{{"url": "/"}},
		"security": []node{{"user": []string{}, "token": []string{}}, {"bearerAuth": []string{}}},
		"paths":    paths,
		"components": node{"schemas": schemas, "securitySchemes": node{
			"user":       node{"type": "apiKey", "in": "header", "name": "X-SLURM-USER-NAME"},
			"token":      node{"type": "apiKey", "in": "header", "name": "X-SLURM-USER-TOKEN"},
			"bearerAuth": node{"type": "http", "scheme": "bearer", "bearerFormat": "JWT"},
		}},
	}
}

// operation describes one endpoint in one version.
func operation(e *Endpoint, v schema.Version, schemas node) node {
	params := []node{}
	for _, m := range pathParam.FindAllStringSubmatch(e.Path, -1) {
		if m[1] != "version" {
			params = append(params, node{"name": m[1], "in": "path", "required": true, "schema": node{"type": "string"}})
		}
	}
	for _, q := range e.Query {
		params = append(params, node{"name": q, "in": "query", "schema": node{"type": "string"}})
	}
	v.Describe(e.Reply, schemas)
	answer := node{"description": "the answer, or what is wrong", "content": content(v.Ref(e.Reply))}
	op := node{
		"summary": e.Summary, "operationId": operationID(e, v), "parameters": params,
		"responses": node{"200": answer, "default": answer},
		"tags":      []string{strings.Split(e.Path, "/")[1]},
	}
	if e.Body != "" {
		v.Describe(e.Body, schemas)
		op["requestBody"] = node{"required": true, "content": content(v.Ref(e.Body))}
	}
	return op
}

func content(ref node) node {
	return node{"application/json": node{"schema": ref}, "application/yaml": node{"schema": ref}}
}

// operationID is slurm_v0040_get_jobs, as generated clients name their functions.
func operationID(e *Endpoint, v schema.Version) string {
	var words []string
	for i, part := range strings.Split(strings.Trim(e.Path, "/"), "/") {
		switch {
		case i == 0:
			words = append(words, part, strings.ReplaceAll(v.String(), ".", ""), strings.ToLower(e.Method))
		case i > 1 && !strings.HasPrefix(part, "{"):
			words = append(words, part)
		}
	}
	id := strings.Join(words, "_")
	if strings.HasSuffix(e.Path, "/{qos}") { // /qos lists all
		id = strings.TrimSuffix(id, "qos") + "single_qos"
	}
	return id
}
