package config

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

var rewriteReference = flag.Bool("rewrite", false, "write the settings reference of the manual anew")

const (
	settingsPage = "../../docs/manual/settings.md"
	// referenceHead begins the part of the page that is made of the structs: everything after it is replaced.
	referenceHead = "\n## Reference\n"
)

// TestSettingsReference: the manual lists every setting with its default. The text of a setting is the comment of its
// field. After a change,
//
//	go test ./internal/config -run Reference -rewrite
//
// writes the page again. Words alone may differ until then; names and defaults may not.
func TestSettingsReference(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(settingsPage)
	if err != nil {
		t.Fatal(err)
	}
	own, have, ok := strings.Cut(string(page), referenceHead)
	if !ok {
		t.Fatalf("%s has no reference", settingsPage)
	}
	want := reference(t)
	if *rewriteReference {
		if err := os.WriteFile(settingsPage, []byte(own+referenceHead+want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, listed := referenceRows(have), referenceRows(want)
	for _, row := range listed {
		if !slices.Contains(got, row) {
			t.Errorf("%s lacks %s: run this test with -rewrite", settingsPage, row)
		}
	}
	for _, row := range got {
		if !slices.Contains(listed, row) {
			t.Errorf("%s lists %s, which is no setting or has another default: run this test with -rewrite", settingsPage, row)
		}
	}
}

// referenceRows are the first two cells of each row.
func referenceRows(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		if f := strings.Split(line, " | "); len(f) >= 3 && strings.HasPrefix(line, "| `") {
			out = append(out, f[0]+" | "+f[1])
		}
	}
	return out
}

// reference writes one table a group of settings.
func reference(t *testing.T) string {
	fset := token.NewFileSet()
	comments := map[string]string{} // Type.Field -> its comment
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		file, err := parser.ParseFile(fset, name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if ts, ok := n.(*ast.TypeSpec); ok {
				if s, ok := ts.Type.(*ast.StructType); ok {
					fieldComments(ts.Name.Name, s, comments)
				}
			}
			return true
		})
	}
	r := &referenceWriter{comments: comments}
	r.b.WriteString("\nThis part is made of the settings themselves, with their defaults. `partitions[]` is each " +
		"entry of " +
		"a list.\n")
	v := reflect.ValueOf(Default()).Elem()
	r.b.WriteString(referenceTable)
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if key := f.Tag.Get("yaml"); key != "" && key != "-" && scalarSetting(v.Field(i)) {
			r.row(key, v.Field(i), "Config."+f.Name)
		}
	}
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if key := f.Tag.Get("yaml"); key != "" && key != "-" && !scalarSetting(v.Field(i)) {
			fmt.Fprintf(&r.b, "\n### %s\n", key)
			if c := r.comments["Config."+f.Name]; c != "" {
				fmt.Fprintf(&r.b, "\n%s%s.\n", strings.ToUpper(c[:1]), strings.TrimSuffix(c[1:], "."))
			}
			r.b.WriteString(referenceTable)
			r.group(key, v.Field(i))
		}
	}
	return r.b.String()
}

const referenceTable = "\n| setting | default | what it is |\n| --- | --- | --- |\n"

type referenceWriter struct {
	b        strings.Builder
	comments map[string]string
}

// group writes the fields of a struct, or of the entries of a list of structs.
func (r *referenceWriter) group(path string, v reflect.Value) {
	if v.Kind() == reflect.Slice {
		path, v = path+"[]", reflect.Zero(v.Type().Elem())
	}
	for i := range v.NumField() {
		f := v.Type().Field(i)
		key := f.Tag.Get("yaml")
		switch sub := v.Field(i); {
		case key == "" || key == "-":
		case scalarSetting(sub):
			r.row(path+"."+key, sub, v.Type().Name()+"."+f.Name)
		default:
			r.group(path+"."+key, sub)
		}
	}
}

func (r *referenceWriter) row(path string, v reflect.Value, field string) {
	value := "–"
	if text, ok := scalarText(v); ok && !strings.Contains(path, "[]") && text != `""` {
		value = "`" + text + "`"
	} else if v.Kind() == reflect.Slice && v.Len() > 0 {
		value = "`" + fmt.Sprint(v.Interface()) + "`"
	}
	fmt.Fprintf(&r.b, "| `%s` | %s | %s |\n", path, value, strings.ReplaceAll(r.comments[field], "|", `\|`))
}

// scalarSetting reports whether a field is a setting of its own: a value or a list of values.
func scalarSetting(v reflect.Value) bool {
	if _, ok := scalarText(v); ok {
		return true
	}
	return v.Kind() != reflect.Struct && (v.Kind() != reflect.Slice || v.Type().Elem().Kind() != reflect.Struct)
}

func fieldComments(typ string, s *ast.StructType, into map[string]string) {
	for _, f := range s.Fields.List {
		text := f.Comment.Text()
		if text == "" {
			text = f.Doc.Text()
		}
		for _, name := range f.Names {
			text := strings.Join(strings.Fields(text), " ")
			if rest, named := strings.CutPrefix(text, name.Name+" "); named && f.Tag != nil {
				key := reflect.StructTag(strings.Trim(f.Tag.Value, "`")).Get("yaml")
				text = "`" + key + "` " + rest
			}
			into[typ+"."+name.Name] = text
		}
	}
}
