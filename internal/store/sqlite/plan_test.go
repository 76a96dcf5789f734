package sqlite

import (
	"strings"
	"testing"
)

// TestPlans: what accounting asks is answered by an index. The texts are those that sqlstore makes.
func TestPlans(t *testing.T) {
	t.Parallel()
	e, _ := raw(t)
	for _, tc := range []struct{ text, want string }{
		{
			`SELECT j.doc FROM jobs j WHERE NOT j.live AND (j.id IN ($1, $2) OR j.array_id IN ($3, $4)) ORDER BY j.id ` +
				`LIMIT $5`,
			"MULTI-INDEX OR",
		},
		{
			`SELECT j.doc FROM jobs j WHERE NOT j.live AND j.usr IN ($1) AND j.end_at > $2 AND j.submit_at < $3 ORDER BY ` +
				`j.id + 0 LIMIT $4`,
			"INDEX jobs_usr (usr=? AND end_at>?)",
		},
		{
			`SELECT j.doc FROM jobs j WHERE NOT j.live AND j.end_at > $1 ORDER BY j.id + 0 LIMIT $2`,
			"INDEX jobs_end (end_at>?)",
		},
		{
			`SELECT j.doc FROM jobs j WHERE NOT j.live AND j.id > $1 ORDER BY j.id LIMIT $2`,
			"PRIMARY KEY (rowid>?)",
		},
		{
			`SELECT j.doc, s.doc FROM jobs j LEFT JOIN specs s ON s.id = j.id AND j.spec_id = j.id WHERE j.live ORDER BY ` +
				`j.id`,
			"INDEX jobs_live",
		},
		{
			`SELECT seq FROM events WHERE node = $1 AND node <> '' ORDER BY seq DESC LIMIT $2`,
			"INDEX events_node (node=?)",
		},
		{
			`SELECT id, spec_id FROM jobs WHERE NOT live AND end_at < $1 ORDER BY end_at LIMIT $2`,
			"INDEX jobs_end (end_at<?)",
		},
		{
			`SELECT t.doc FROM jobs j CROSS JOIN steps t WHERE j.live AND t.job = j.id ORDER BY j.id, t.attempt, t.id`,
			"INDEX jobs_live",
		},
		{
			`SELECT p.data FROM blobs b JOIN packs p ON p.id = b.pack WHERE b.hash = $1 AND b.shelf IN ($2, $3) LIMIT 1`,
			"PRIMARY KEY (shelf=? AND hash=?)",
		},
		{
			`SELECT job FROM submit_keys WHERE key = $1 AND shelf IN ($2, $3)`,
			"PRIMARY KEY (shelf=? AND key=?)",
		},
		{
			`SELECT s.id FROM specs s WHERE s.id IN ($1) AND NOT EXISTS (SELECT 1 FROM jobs j WHERE j.array_id = s.id)`,
			"INDEX jobs_array (array_id=?)",
		},
	} {
		var id, parent, unused int64
		var detail string
		var plan []string
		err := e.writer.query(t.Context(), "EXPLAIN QUERY PLAN "+tc.text, nil, []any{&id, &parent, &unused, &detail},
			func() error {
				plan = append(plan, detail)
				return nil
			})
		if err != nil {
			t.Fatal(err)
		}
		if all := strings.Join(plan, "; "); !strings.Contains(all, tc.want) {
			t.Errorf("%s\nis answered by %s, want %s", tc.text, all, tc.want)
		}
	}
}
