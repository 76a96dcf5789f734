package gpu

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestExported(t *testing.T) {
	t.Parallel()
	const mine = "# HELP DCGM_FI_DEV_GPU_TEMP GPU temperature (in C).\n# TYPE DCGM_FI_DEV_GPU_TEMP gauge\nDCGM_FI_DEV_GPU_TEMP{gpu=\"0\",UUID=\"GPU-a\"} 35\n"
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/metrics" {
			w.WriteHeader(http.StatusNotFound)
		}
		fmt.Fprint(w, mine+"DCGM_FI_DEV_GPU_TEMP{gpu=\"1\",UUID=\"GPU-z\"} 40\nother_metric{UUID=\"GPU-a\"} 1\n")
	}))
	defer s.Close()
	list := List{{UUID: "GPU-a"}}
	got, err := Exported(t.Context(), s.URL+"/metrics", list)
	if diff := cmp.Diff(mine, string(got)); diff != "" || err != nil {
		t.Error(diff, err)
	}
	if _, err := Exported(t.Context(), s.URL+"/", list); err == nil {
		t.Error("an exporter that answers with an error gives none")
	}
}
