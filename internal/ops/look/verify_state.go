package look

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"sbx/internal/fleet"
	"sbx/internal/ops"
	"sbx/internal/ops/recall"
	"sbx/internal/sandbox"
)

// EndedWithin is how far back verify looks for what was ended.
const EndedWithin = time.Hour

// State says what was done, and how the sandboxes stand: "26 of 26 ended, verified, in the last 1h; 0 stuck; 10 not judged".
func (r *VerifyResult) State() string {
	within := " in the last " + sandbox.FormatDuration(EndedWithin)
	text := "nothing was ended" + within
	switch done := r.Done.Text(); {
	case done != "" && r.DoneErr != nil:
		text = done + "," + within + ", by the records that could be read: " + r.DoneErr.Error()
	case done != "":
		text = done + "," + within
	case r.DoneErr != nil:
		text = "what was ended" + within + " is not known: " + r.DoneErr.Error()
	}
	text += fmt.Sprintf("; %d stuck", r.Stuck)
	if r.Unjudged > 0 {
		text += fmt.Sprintf("; %d not judged", r.Unjudged)
	}
	if may := MayRunText(r.MayRun); may != "" {
		text += "; " + may
	}
	if len(r.Unlisted) > 0 {
		text += "; not listed: " + strings.Join(r.Unlisted, ", ")
	}
	return text
}

// MayRunText says what counts as active although no provider lists it; "" = nothing does.
func MayRunText(refs []sandbox.Ref) string {
	if len(refs) == 0 {
		return ""
	}
	names := make([]string, len(refs))
	for i, ref := range refs {
		names[i] = ref.String()
	}
	return fmt.Sprintf(
		"%d counted as active may still run, since the end that was requested is not proved: %s", len(refs), sandbox.FormatFirst(names, mayRunNamed),
	)
}

// mayRunNamed is how many of those are named.
const mayRunNamed = 5

// addState adds what was ended lately, and how the sandboxes stand.
func (r *VerifyResult) addState(ctx context.Context, e *ops.Env, profiles []string, stats []fleet.ProviderStats, judged []fleet.Judged) {
	found, err := recall.Audit(ctx, e, recall.AuditRequest{Since: r.At.Add(-EndedWithin), Profiles: profiles})
	if r.DoneErr = err; err == nil {
		r.Done, r.DoneErr = ops.CountEnds(found.Acts), errors.Join(found.Errors...)
	}
	census := censusOf(judged)
	r.Stuck, r.Unjudged = int(census.Stuck), int(census.Unjudged)
	for _, s := range stats {
		r.MayRun = append(r.MayRun, s.MayRun...)
		if s.ItemsErr != nil {
			r.Unlisted = append(r.Unlisted, s.Provider)
		}
	}
}
