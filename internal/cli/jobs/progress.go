package jobs

import (
	"context"
	"fmt"
	"time"

	"bireme.dev/bireme/internal/cli/app"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/dstack/wire"
)

// lookAgain is how often a run that has not started is looked at.
const lookAgain = time.Second

// progress prints the progress of a run that has not started: why it waits, that its nodes are prepared, how far its
// image is, that it runs. Nothing is said of one that starts at once.
func (t *attachment) progress(ctx context.Context) {
	if app.Wait(ctx, patience) != nil {
		return
	}
	said := t.explainWait(ctx)
	for waited := said; ; waited = true {
		run, err := getRun(ctx, t.client, t.project, t.name)
		if err != nil { // the one who follows its output learns what is wrong
			return
		}
		text, more := t.stage(run)
		if text != "" && (waited || more) {
			t.note("run %s: %s", t.name, text)
		}
		if !more || app.Wait(ctx, lookAgain) != nil {
			return
		}
	}
}

// explainWait returns why the run waits, and reports whether it does.
func (t *attachment) explainWait(ctx context.Context) bool {
	w, err := t.client.Why(ctx, t.job)
	if err != nil || w.State != core.Pending {
		return false
	}
	t.note("run %s is waiting (%s): %s", t.name, w.Reason, w.Why)
	return true
}

// stage words what a run is at, if that is news, and whether more may come before it runs.
func (t *attachment) stage(run *wire.Run) (text string, more bool) {
	last := run.LatestJobSubmission
	if last == nil {
		return "", !finished(run.Status)
	}
	status := last.Status
	text = status
	switch status {
	case wire.JobSubmitted:
		return "", true
	case wire.JobProvisioning:
		text = "preparing its nodes"
	case wire.JobPulling:
		text = "pulling its image" + pulled(last.ImagePullProgress)
	case wire.JobRunning:
		text = "running"
		if last.JobProvisioningData != nil && last.JobProvisioningData.InstanceID != "" {
			text += " on " + last.JobProvisioningData.InstanceID
		}
	default:
		return "", false // its end is told by who follows it
	}
	if text == t.at {
		text = ""
	} else {
		t.at = text
	}
	return text, status != wire.JobRunning
}

// pulled words how far an image is: 120 of 300 MB.
func pulled(p *wire.ImagePullProgress) string {
	if p == nil || p.TotalBytes == 0 {
		return ""
	}
	least := ""
	if !p.IsTotalBytesFinal {
		least = "at least "
	}
	return fmt.Sprintf(" (%d of %s%d MB)", p.DownloadedBytes>>20, least, p.TotalBytes>>20)
}
