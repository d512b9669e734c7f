package recall

import (
	"context"
	"errors"

	"sbx/internal/fault"
	"sbx/internal/history"
	"sbx/internal/ops"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// LastSeen is the newest evidence of a sandbox from an earlier look; nil = there is none. A word
// without a profile means an id at any configured one; an id at several means none. The error is
// that of the store.
func LastSeen(ctx context.Context, e *ops.Env, word string) (*history.Seen, error) {
	ref, err := sandbox.ParseRef(word)
	if err != nil {
		return nil, nil // nothing is kept under such a word
	}
	profiles := []string{ref.Provider}
	if ref.Bare() {
		profiles = e.ConfiguredNames()
	}
	st, err := e.Store(false)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithTimeout(ctx, e.Process.TimeScale.Limit(ops.StoreTimeout))
	defer stop()
	var found []history.Seen
	for _, profile := range profiles {
		seen, known, readErr := history.LastSeen(ctx, st, sandbox.Ref{Provider: profile, ID: ref.ID})
		if err = errors.Join(err, readErr); known {
			found = append(found, seen)
		}
	}
	if err = errors.Join(err, st.Close()); err != nil || len(found) != 1 {
		return nil, err
	}
	return &found[0], nil
}

// DescribeLastSeen replaces a "not found" error by one that says what was seen last.
func DescribeLastSeen(e *ops.Env, seen *history.Seen, missing error) error {
	if kind := fault.KindOf(missing); kind != fault.KindNotFound && kind != fault.KindGone {
		return missing
	}
	s := seen.Sandbox
	return fault.New(fault.KindOf(missing), "it no longer exists; it was %s %s ago", s.State, sandbox.FormatElapsed(max(0, e.Now().Sub(seen.At)))).
		At(s.Provider, s.ID)
}

// DescribeUnread adds to a "not found" error that what earlier looks have seen cannot be read: there
// may be something on record. It has the kind of the store's error, so that a script tries again.
func DescribeUnread(e *ops.Env, missing, unread error) error {
	kind := fault.KindOf(unread)
	if kind == fault.KindUnknown {
		kind = fault.KindUnavailable
	}
	described := fault.New(kind, "%w; what earlier looks have seen of it cannot be read: %w", missing, unread)
	if hint := fault.HintOf(unread); hint != "" {
		return described.WithHint("%s", hint)
	}
	return described.WithHint("`%s doctor` checks the store", e.Process.Name())
}

// SeenCauses are the causes that an earlier look found.
func SeenCauses(seen *history.Seen) []triage.Finding {
	if seen == nil {
		return nil
	}
	var causes []triage.Finding
	for _, c := range seen.Causes {
		causes = append(causes, triage.Finding{
			ID: c.ID, Cause: c.Cause, Title: c.Title, Confidence: c.Confidence, Score: c.Score, Coverage: c.Coverage, Evidence: c.Evidence, WhyNot: c.WhyNot,
		})
	}
	if len(causes) > 0 || seen.Cause == sandbox.CauseNone || seen.Cause == sandbox.CauseUnknown {
		return causes
	}
	return []triage.Finding{{ // evidence of an older version
		ID: string(seen.Cause), Cause: seen.Cause, Title: seen.Reason, Score: 1, Coverage: 1, Confidence: sandbox.Probable,
		Evidence: []sandbox.Evidence{{What: "seen", Value: seen.Reason, Source: "an earlier look", At: seen.At}},
	}}
}
