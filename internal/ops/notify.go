package ops

import (
	"context"

	"sbx/internal/cron"
	"sbx/internal/notify"
	"sbx/internal/sandbox"
)

// notifyOverdue notifies people of each layer that should have run and did not. A failed
// notification is a warning.
func (e *Env) notifyOverdue(ctx context.Context, watch Reporter, statuses []cron.Status) {
	n, err := e.Notifier("")
	if err != nil {
		watch.Warn(err.Error())
	}
	defer n.Close()
	for _, s := range statuses {
		if s.Verdict != sandbox.False {
			continue
		}
		what := " leaves stuck sandboxes on "
		if s.Overdue {
			what = " is overdue on "
		}
		err := n.Send(ctx, notify.Message{
			Verb: "cron", Host: e.Process.Host, Kind: notify.KindOverdue, Key: "cron " + string(s.Layer),
			Title: "sbx layer " + string(s.Layer) + what + e.Process.Host, Text: s.Message,
			Figures: map[string]string{"expected every": sandbox.FormatDuration(s.Every)}, At: e.Now(),
		})
		if err != nil {
			watch.Warn(err.Error())
		}
	}
}
