package report

import (
	"fmt"
	"io"
	"strings"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/grammar"
	"bireme.dev/bireme/internal/core/plain"
)

// ShowReservation prints a reservation as scontrol show reservation of Slurm 22.05 does.
func ShowReservation(r *client.Reservation, o ShowOptions) string {
	licenses := make([]string, len(r.Licenses))
	for i, l := range r.Licenses {
		licenses[i] = fmt.Sprintf("%s:%d", l.Name, l.Total)
	}
	delay := "(null)"
	if r.MaxDelay > 0 {
		delay = grammar.FormatClock(int64(r.MaxDelay))
	}
	var tres []string
	if r.CPUs > 0 {
		tres = append(tres, fmt.Sprintf("cpu=%d", r.CPUs))
	}
	for _, l := range r.Licenses {
		tres = append(tres, fmt.Sprintf("license/%s=%d", l.Name, l.Total))
	}
	lines := []string{
		fmt.Sprintf("ReservationName=%s StartTime=%s EndTime=%s Duration=%s", r.Name, TimeText(r.Start, "None"),
			TimeText(r.End, "None"), reservedFor(r)),
		fmt.Sprintf("Nodes=%s NodeCnt=%d CoreCnt=%d Features=%s PartitionName=%s Flags=%s",
			orNull(r.Nodes), r.NodeCount, r.Cores, orNull(r.Features.String()), orNull(string(r.Partition)),
			reservationFlags(r)),
		"TRES=" + orNull(strings.Join(tres, ",")),
		fmt.Sprintf("Users=%s Groups=%s Accounts=%s Licenses=%s State=%s BurstBuffer=(null) Watts=n/a",
			orNull(joinNames(r.Users)), orNull(strings.Join(r.Groups, ",")), orNull(joinNames(r.Projects)),
			orNull(strings.Join(licenses, ",")), r.State),
		"MaxStartDelay=" + delay,
	}
	if r.Comment != "" {
		lines = append(lines, "Comment="+r.Comment)
	}
	return block(lines, o.OneLine)
}

func reservedFor(r *client.Reservation) string {
	return grammar.FormatClock(int64(r.End.Sub(r.Start) / time.Second))
}

// reservationFlags are its flags; the time after which an idle one goes is told with the flag.
func reservationFlags(r *client.Reservation) string {
	words := r.Flags.Words()
	for i, w := range words {
		if w == core.ReservePurgeCompleted.String() && r.PurgeComp > 0 {
			words[i] = w + "=" + grammar.FormatClock(int64(r.PurgeComp))
		}
	}
	return strings.Join(words, ",")
}

// ListReservations prints reservations as sinfo -T does.
func ListReservations(out io.Writer, list []client.Reservation, header bool) {
	width := len("RESV_NAME")
	for i := range list {
		width = max(width, len(list[i].Name))
	}
	row := func(name, state, start, end, length, nodes string) {
		fmt.Fprintf(out, "%-*s  %8s  %19s  %19s  %11s  %s\n", width, plain.Cell(name), state, start, end, length, nodes)
	}
	if header {
		row("RESV_NAME", "STATE", "START_TIME", "END_TIME", "DURATION", "NODELIST")
	}
	for i := range list {
		r := &list[i]
		row(r.Name, r.State, TimeText(r.Start, "None"), TimeText(r.End, "None"), reservedFor(r), r.Nodes)
	}
}
