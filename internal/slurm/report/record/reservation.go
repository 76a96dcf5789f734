package record

import (
	"strconv"
	"strings"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/slurm/schema"
)

// Reservations lists advance reservations.
func Reservations(list []client.Reservation, now time.Time) *schema.Record {
	records := []*schema.Record{}
	for i := range list {
		records = append(records, reservation(&list[i]))
	}
	return schema.New("openapi_reservation_resp").Set("reservations", records).Set("last_update", schema.Int(now.Unix()))
}

func reservation(r *client.Reservation) *schema.Record {
	var licenses []string
	for _, l := range r.Licenses {
		licenses = append(licenses, l.Name+":"+strconv.FormatInt(l.Total, 10))
	}
	out := schema.New("reservation_info").
		Set("name", r.Name).Set("start_time", schema.Time(r.Start)).Set("end_time", schema.Time(r.End)).
		Set("node_list", r.Nodes).Set("node_count", r.NodeCount).Set("core_count", r.Cores).
		Set("features", r.Features.String()).Set("partition", string(r.Partition)).
		Set("groups", strings.Join(r.Groups, ",")).
		Set("users", Joined(r.Users)).Set("accounts", Joined(r.Projects)).Set("licenses", strings.Join(licenses, ",")).
		Set("flags", ReservationWords(r.Flags)).Set("max_start_delay", int64(r.MaxDelay)).Set("watts", schema.Number{})
	if r.PurgeComp > 0 {
		out.Set("purge_completed", schema.New("reservation_info_purge").Set("time", schema.Int(int64(r.PurgeComp))))
	}
	if r.CPUs > 0 {
		out.Set("tres", "cpu="+strconv.Itoa(int(r.CPUs)))
	}
	return out
}

// ReservationWords are the flags of a reservation that clients know.
func ReservationWords(f core.ReserveFlag) []string {
	list := []string{}
	for _, w := range f.Words() {
		if w == "PURGE_COMP" || schema.Known("reservation_flag", w) {
			list = append(list, w)
		}
	}
	return list
}

// Joined writes names with commas between them.
func Joined[T ~string](list []T) string {
	all := make([]string, len(list))
	for i, w := range list {
		all[i] = string(w)
	}
	return strings.Join(all, ",")
}
