package api

import (
	"encoding"
	"net/http"
	"reflect"
	"regexp"
	"strings"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/server/api/call"
)

// openapi serves the API's description, made from the table of routes and the Go types themselves.
func (a *API) openapi(http.ResponseWriter, *http.Request, *call.Caller) (any, error) {
	return a.document(), nil
}

type object = map[string]any

func (a *API) document() object {
	g := &schemas{defs: object{}}
	paths := object{}
	for i := range a.routes {
		rt := &a.routes[i]
		if !rt.Native {
			continue
		}
		item, _ := paths[rt.Path].(object)
		if item == nil {
			item = object{}
			paths[rt.Path] = item
		}
		item[strings.ToLower(rt.Method)] = g.operation(rt)
	}
	return object{
		"openapi": "3.1.0",
		"info": object{
			"title": "Bireme", "version": a.version,
			"description": "The native API. Errors have the body of ErrorBody and a status by code. " +
				"Local callers use a unix socket and need no token.",
		},
		"servers":  []object{{"url": "/"}},
		"security": []object{{"token": []string{}}},
		"paths":    paths,
		"components": object{"schemas": g.defs, "securitySchemes": object{"token": object{
			"type":   "http",
			"scheme": "bearer",
		}}},
	}
}

var pathParam = regexp.MustCompile(`\{(\w+)\}`)

// schemas collects the types that are used, by name.
type schemas struct{ defs object }

func (g *schemas) operation(rt *call.Route) object {
	op := object{"summary": rt.Summary, "operationId": operationID(rt)}
	params := []object{}
	for _, m := range pathParam.FindAllStringSubmatch(rt.Path, -1) {
		params = append(params, object{"name": m[1], "in": "path", "required": true, "schema": object{"type": "string"}})
	}
	for _, q := range rt.Query {
		params = append(params, object{"name": q, "in": "query", "schema": object{"type": "string"}})
	}
	if len(params) > 0 {
		op["parameters"] = params
	}
	if rt.Open {
		op["security"] = []object{}
	}
	if rt.Body != nil {
		op["requestBody"] = object{"required": true, "content": g.jsonOf(reflect.TypeOf(rt.Body))}
	}
	ok := object{"description": "done"}
	if kind, raw := rt.Reply.(string); raw {
		ok["content"] = object{kind: object{}}
	} else if rt.Reply != nil {
		ok["content"] = g.jsonOf(reflect.TypeOf(rt.Reply))
	}
	failed := object{"description": "an error", "content": g.jsonOf(reflect.TypeFor[client.ErrorBody]())}
	op["responses"] = object{"200": ok, "default": failed}
	return op
}

// jsonOf is a body in JSON of a type.
func (g *schemas) jsonOf(t reflect.Type) object {
	return object{"application/json": object{"schema": g.of(t)}}
}

// operationID is made of the method and the path: getJobsIdLogs.
func operationID(rt *call.Route) string {
	id := strings.ToLower(rt.Method)
	for _, part := range strings.FieldsFunc(strings.TrimPrefix(rt.Path, call.Prefix),
		func(r rune) bool { return strings.ContainsRune("/{}._", r) }) {
		id += strings.ToUpper(part[:1]) + part[1:]
	}
	return id
}

var (
	textType     = reflect.TypeFor[encoding.TextMarshaler]()
	durationType = reflect.TypeFor[time.Duration]()
	rawType      = reflect.TypeFor[interface{ MarshalJSON() ([]byte, error) }]()
	timeType     = reflect.TypeFor[core.Time]()
)

// publishedNames are the names of schemas whose types have moved or were renamed since: generated clients know them.
var publishedNames = map[reflect.Type]string{
	reflect.TypeFor[call.OK]():       "OkBody",
	reflect.TypeFor[core.RankSpan](): "RankSpan",
}

// of returns the schema of a type; structs are put under their name once.
func (g *schemas) of(t reflect.Type) object {
	switch {
	case t.Kind() == reflect.Pointer:
		return g.of(t.Elem())
	case t == durationType:
		return object{"type": "integer", "description": "nanoseconds"}
	case t == timeType:
		return object{"type": "integer", "description": "microseconds since 1970 UTC"}
	case t == reflect.TypeFor[core.KeptOptions]():
		return object{"type": "object", "additionalProperties": object{"type": "string"}}
	case t.Implements(textType) || reflect.PointerTo(t).Implements(textType):
		return object{"type": "string"}
	case t.Implements(rawType) || reflect.PointerTo(t).Implements(rawType):
		return object{} // it writes itself
	}
	switch t.Kind() {
	case reflect.String:
		return object{"type": "string"}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Float32, reflect.Float64:
		return object{"type": "number"}
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return object{"type": "string", "contentEncoding": "base64"}
		}
		return object{"type": "array", "items": g.of(t.Elem())}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": g.of(t.Elem())}
	case reflect.Struct:
		return g.ref(t)
	case reflect.Interface:
		return object{}
	}
	return object{"type": "integer"}
}

func (g *schemas) ref(t reflect.Type) object {
	name := t.Name()
	if name == "" {
		return g.properties(t)
	}
	pkg := t.PkgPath()[strings.LastIndexByte(t.PkgPath(), '/')+1:]
	if published := publishedNames[t]; published != "" {
		name = published
	} else if pkg != "client" && !strings.Contains(t.PkgPath(), "/server/api") {
		name = strings.ToUpper(pkg[:1]) + pkg[1:] + name // core.Job and client.Job are two things
	}
	name = strings.ToUpper(name[:1]) + name[1:]
	if _, done := g.defs[name]; !done {
		g.defs[name] = object{} // a type may hold itself
		g.defs[name] = g.properties(t)
	}
	return object{"$ref": "#/components/schemas/" + name}
}

func (g *schemas) properties(t reflect.Type) object {
	props, required := object{}, []string{}
	g.collect(t, props, &required)
	out := object{"type": "object", "properties": props}
	if len(required) > 0 {
		out["required"] = required
	}
	return out
}

func (g *schemas) collect(t reflect.Type, props object, required *[]string) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, opts, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" {
			g.collect(f.Type, props, required)
			continue
		}
		if !f.IsExported() || name == "-" {
			continue
		}
		if name == "" {
			name = f.Name
		}
		props[name] = g.of(f.Type)
		if !strings.Contains(opts, "omit") {
			*required = append(*required, name)
		}
	}
}
