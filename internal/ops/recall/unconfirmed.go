package recall

import (
	"cmp"
	"context"
	"slices"
	"time"

	"al.essio.dev/pkg/shellescape"

	"sbx/internal/fleet"
	"sbx/internal/ops"
	"sbx/internal/sandbox"
)

// UnconfirmedEnd is a sandbox that may still run after a request to end it.
type UnconfirmedEnd struct {
	Ref     sandbox.Ref
	Request sandbox.EndRequest
}

// Message says since when and why it is not known to have ended.
func (u UnconfirmedEnd) Message(now time.Time) string {
	return "its end was requested " + sandbox.FormatDuration(max(0, now.Sub(u.Request.At)).Truncate(time.Second)) +
		" ago and is not confirmed (" + cmp.Or(u.Request.Detail, "no answer") + "): it may still run"
}

// Hint is what to type.
func (u UnconfirmedEnd) Hint() string {
	return "`sbx terminate " + shellescape.Quote(u.Ref.String()) + "` looks again, and requests the end again where it is still found"
}

// UnconfirmedEnds lists the ends at the profiles of f that were requested, not acknowledged and not proved since, the
// oldest first. A provider may list such a sandbox no more.
func UnconfirmedEnds(ctx context.Context, f *fleet.Fleet) ([]UnconfirmedEnd, error) {
	open, err := f.Unconfirmed(ctx)
	var all []UnconfirmedEnd
	for ref, r := range open {
		if r.Unconfirmed() && slices.Contains(f.Names(), ref.Provider) {
			all = append(all, UnconfirmedEnd{ref, r})
		}
	}
	slices.SortFunc(all, func(a, b UnconfirmedEnd) int {
		return cmp.Or(a.Request.At.Compare(b.Request.At), cmp.Compare(a.Ref.String(), b.Ref.String()))
	})
	return all, err
}

// UnconfirmedChecks are rows about sandboxes that may still run after a request to end them; none = no row.
func UnconfirmedChecks(ctx context.Context, e *ops.Env, f *fleet.Fleet) []ops.Check {
	const check = "end requests"
	open, err := UnconfirmedEnds(ctx, f)
	var rows []ops.Check
	if err != nil {
		rows = append(rows, ops.ToolCheck(check, sandbox.Unknown, UnreadRequests(err), ""))
	}
	for _, u := range open {
		row := ops.ToolCheck(check, sandbox.False, u.Ref.ID+": "+u.Message(e.Now()), u.Hint()).AsWarning()
		row.Provider = u.Ref.Provider
		rows = append(rows, row)
	}
	return rows
}

// UnreadRequests says that nothing is known of earlier requests.
func UnreadRequests(err error) string {
	return "the records of earlier requests to end sandboxes cannot be read: " + err.Error()
}
