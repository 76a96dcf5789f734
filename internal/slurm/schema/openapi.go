package schema

import (
	"strings"
)

// node is a part of an OpenAPI document.
type node = map[string]any

// RefName is the name of an object's description in a document.
func (v Version) RefName(object string) string { return v.String() + "_" + object }

// Ref points to the description of an object.
func (v Version) Ref(object string) map[string]any {
	return node{"$ref": "#/components/schemas/" + v.RefName(object)}
}

// Describe puts the description of an object, and of those within it, into a document's schemas.
func (v Version) Describe(name string, schemas map[string]any) {
	key := v.RefName(name)
	if schemas[key] != nil {
		return
	}
	properties := node{}
	schemas[key] = node{"type": "object", "properties": properties}
	o := Of(name)
	for i := range o.fields {
		f := o.fields[i].form(v)
		if f.kind != absent {
			properties[o.fields[i].name] = v.describeForm(f, schemas)
		}
	}
	if strings.HasPrefix(name, "openapi_") && strings.Contains(name, "_resp") || name == "openapi_resp" {
		for _, part := range []string{"openapi_meta", "openapi_error", "openapi_warning"} {
			v.Describe(part, schemas)
		}
		properties["meta"] = v.Ref("openapi_meta")
		properties["errors"] = node{"type": "array", "items": v.Ref("openapi_error")}
		properties["warnings"] = node{"type": "array", "items": v.Ref("openapi_warning")}
	}
}

func (v Version) describeForm(f *form, schemas map[string]any) node {
	switch f.kind {
	case text, textOrNull:
		out := node{"type": "string"}
		if words := sets[f.words]; words != "" {
			out["enum"] = strings.Fields(words)
		}
		return out
	case boolean:
		return node{"type": "boolean"}
	case integer, integerOrNull:
		return node{"type": "integer", "format": f.format}
	case double:
		return node{"type": "number", "format": "double"}
	case optional:
		return v.Ref(v.optional(f, schemas))
	case list:
		return node{"type": "array", "items": v.describeForm(f.elem, schemas)}
	case object:
		v.Describe(f.name, schemas)
		return v.Ref(f.name)
	case free, absent:
	}
	return node{"type": "object"}
}

// optional describes a number that may be unset or infinite.
func (v Version) optional(f *form, schemas map[string]any) string {
	name, number := "uint32_no_val_struct", node{"type": "integer", "format": f.format}
	switch f.format {
	case "int64":
		name = "uint64_no_val_struct"
	case "double":
		name, number = "float64_no_val_struct", node{"type": "number", "format": "double"}
	}
	schemas[v.RefName(name)] = node{"type": "object", "properties": node{
		"set": node{"type": "boolean"}, "infinite": node{"type": "boolean"}, "number": number,
	}}
	return name
}
