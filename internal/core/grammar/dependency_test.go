package grammar

import "testing"

func FuzzParseDependency(f *testing.F) {
	f.Add("afterok:1:2,after:3+4,singleton")
	f.Add("1?2_3")
	f.Fuzz(func(t *testing.T, in string) {
		d, err := ParseDependency(in)
		if err == nil && (len(d.Items) == 0 || len(d.Items) > maxDependencies+len(in)) {
			t.Fatalf("%q gave %d items", in, len(d.Items))
		}
	})
}
