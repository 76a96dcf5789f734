package record

import (
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/slurm/schema"
)

// Licenses lists licenses and what is used of them.
func Licenses(list *client.LicenseList, now time.Time) *schema.Record {
	records := []*schema.Record{}
	for i := range list.Licenses {
		l := &list.Licenses[i]
		records = append(records, schema.New("license").Set("LicenseName", l.Name).Set("Total", l.Total).
			Set("Used", l.Used).Set("Free", l.Free()).Set("Reserved", l.Reserved).Set("LastUpdate", now.Unix()))
	}
	return schema.New("openapi_licenses_resp").Set("licenses", records).Set("last_update", schema.Int(now.Unix()))
}
