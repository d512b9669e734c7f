package providers

import (
	"context"
	"iter"
	"slices"
	"time"

	"sbx/internal/sandbox"
)

// ExitReader reads how the program that create started has ended, also while its sandbox stays
// (sandbox.Spec.KeepAfterExit).
type ExitReader interface {
	// Exit is nil while the program runs. The later end of the sandbox does not change it, but may
	// remove it. fault.KindNotFound without such a sandbox, or without a program of sbx in it.
	Exit(ctx context.Context, id string) (*sandbox.Exit, error)
}

// QuotaReader reads the limits and the use of an account.
type QuotaReader interface {
	Quota(ctx context.Context) ([]Quota, error)
}

// Quota is one limit of an account. Nil = not known.
type Quota struct {
	Name  string // "concurrent sandboxes", "cpu"
	Scope string // its region or class; "" = the account
	Unit  string // "sandboxes", "cores", "MiB"
	Used  *float64
	Limit *float64
}

// Share is how much of the limit is used, 1 = full. Where nothing is used that is 0, whatever the limit.
func (q Quota) Share() (share float64, known bool) {
	switch {
	case q.Used == nil:
		return 0, false
	case q.Limit != nil && *q.Limit > 0:
		return *q.Used / *q.Limit, true
	}
	return 0, *q.Used == 0 && q.Limit == nil
}

// HighestUse is the limit of which the largest share is used, with that share, 1 = full; false where
// no limit has its use.
func HighestUse(quotas []Quota) (share float64, fullest Quota, known bool) {
	for _, q := range quotas {
		if used, ok := q.Share(); ok && (!known || used > share) {
			share, fullest, known = used, q, true
		}
	}
	return share, fullest, known
}

// Recorder reads a control plane's records of the sandboxes that should exist. A failed or partial read
// is an error.
type Recorder interface {
	Records(ctx context.Context) iter.Seq2[Record, error]
}

// RecordRemover removes a control plane's record of a sandbox that is gone. It is called only after a
// read by id has not found the sandbox.
type RecordRemover interface {
	// RemoveRecord returns nil when the request was accepted; a read of the records shows its
	// effect. fault.KindUnsupported where the control plane does not find its record by the id.
	RemoveRecord(ctx context.Context, id string) error
}

// Record is one row of a control plane. Zero values are unknown.
type Record struct {
	SandboxID string
	// Labels are the labels of the provider's sandbox, where the control plane has ids of its own and
	// the provider's id is not known.
	Labels    map[string]string
	TaskID    string
	AgentType string
	RawState  string          // of the control plane
	Live      sandbox.Verdict // whether the sandbox should exist
	KeepAlive bool            // it should outlive its task
	CreatedAt time.Time
	UpdatedAt time.Time
	EndedAt   time.Time
}

// ActivityReader reads the last activity of a sandbox.
type ActivityReader interface {
	Activity(ctx context.Context, id string) (Activity, error)
}

// Activity is what a control plane knows about the activity of a sandbox. Heartbeats are no work: they
// come also in a hung turn and after completion.
type Activity struct {
	LastWorkAt      time.Time
	LastHeartbeatAt time.Time
	WaitsSince      time.Time // since when the agent waits for a message, without work since; zero = it does not
	// Silence is how long it has reported no work, from the last work to the newest heartbeat: times of one
	// clock, whatever this machine's is. 0 = nothing proves that it is silent.
	Silence  time.Duration
	Evidence []sandbox.Evidence
}

// Later merges the activity of two sources: the later times, the shorter silence, all evidence.
func (a Activity) Later(b Activity) Activity {
	a.Silence = min(a.Silence, b.Silence)
	if b.LastWorkAt.After(a.LastWorkAt) {
		a.LastWorkAt = b.LastWorkAt
	}
	if b.LastHeartbeatAt.After(a.LastHeartbeatAt) {
		a.LastHeartbeatAt = b.LastHeartbeatAt
	}
	if b.WaitsSince.After(a.WaitsSince) {
		a.WaitsSince = b.WaitsSince
	}
	if a.LastWorkAt.After(a.WaitsSince) {
		a.WaitsSince = time.Time{}
	}
	a.Evidence = append(slices.Clip(a.Evidence), b.Evidence...)
	return a
}

// Linker is a Source with its own ids for a provider's sandboxes. A Source without it uses the
// provider's ids.
type Linker interface {
	// Link finds the source's id of s by a label or a name that both sides have.
	// fault.KindNotFound where s is no sandbox of the source; any other error where it may be one
	// and cannot be linked: then no data of the source belongs to s.
	Link(ctx context.Context, s sandbox.Sandbox) (string, error)
}

// Source is a control plane beside a provider: it has events, activity and records of that provider's
// sandboxes, and can neither list nor end them. Its abilities are found with As: EventReader,
// ActivityReader, Recorder, Checker.
type Source interface {
	Named
}

// Explainer says why an ability is missing, in half a sentence for `sbx providers`: "the API keeps no
// output". "" where the ability exists or no reason is known.
type Explainer interface {
	WhyNot(ability string) string
}

// ProviderCleaner starts a provider's own cleanup, which selects by itself. It is destructive and has
// its own safety check.
type ProviderCleaner interface {
	// Cleanup starts it; emergency includes everything that is not critical.
	Cleanup(ctx context.Context, emergency bool) (Cleaned, error)
}

// Cleaned is the result of a provider's cleanup; nil = not reported.
type Cleaned struct{ Count *int64 }

// Clock is how far a provider's clock is ahead of this machine's, by its last answer; false before the
// first answer and where it has no time.
type Clock interface {
	Skew() (time.Duration, bool)
}
