package dstackapi_test

import (
	"fmt"
	"testing"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/server/dstackapi/dstackapitest"
	"bireme.dev/bireme/internal/server/servertest"
)

// BenchmarkPs is `dstack ps` on a server with 1,500 open runs that wait.
func BenchmarkPs(b *testing.B) {
	s := servertest.Start(b)
	ada := dstackapitest.New(b, s, "ada", core.RoleAdmin)
	ada.Get("/api/projects/create", map[string]any{"project_name": "main"}, nil)
	for i := range 1500 {
		ada.Get(project+"runs/apply", map[string]any{
			"plan": map[string]any{"run_spec": spec(fmt.Sprintf("run-%d", i))}, "force": false,
		}, nil)
	}
	for _, active := range []bool{true, false} {
		b.Run(fmt.Sprintf("active=%v", active), func(b *testing.B) {
			for b.Loop() {
				ada.Get("/api/runs/list", map[string]any{
					"project_name": "main", "only_active": active, "job_submissions_limit": 1,
				}, nil)
			}
		})
	}
	b.Run("get", func(b *testing.B) {
		for b.Loop() {
			ada.Get(project+"runs/get", map[string]any{"run_name": "run-700"}, nil)
		}
	})
}
