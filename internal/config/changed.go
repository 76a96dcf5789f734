package config

import (
	"io"
	"reflect"
)

// ShowChanged writes the settings of c that are not those of base, as YAML that Load reads over base.
func (c *Config) ShowChanged(w io.Writer, base *Config) error {
	p := &printer{bare: true}
	p.changed("", 0, reflect.ValueOf(c).Elem(), reflect.ValueOf(base).Elem())
	_, err := io.WriteString(w, p.b.String())
	return err
}

// changed writes the fields of a struct that differ from those of another.
func (p *printer) changed(path string, indent int, v, base reflect.Value) {
	for i := range v.NumField() {
		key := v.Type().Field(i).Tag.Get("yaml")
		f, b := v.Field(i), base.Field(i)
		if key == "" || key == "-" || reflect.DeepEqual(f.Interface(), b.Interface()) {
			continue
		}
		_, scalar := scalarText(f)
		if f.Kind() == reflect.Struct && !scalar {
			p.line(indent, false, "", key+":", false)
			p.changed(join(path, key), indent+1, f, b)
			continue
		}
		p.field(join(path, key), key, indent, f, false)
	}
}
