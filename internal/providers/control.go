package providers

import (
	"context"
	"iter"
	"slices"
	"time"

	"sbx/internal/sandbox"
)

// ExitReader tells how the program that create started has ended, also while its
// sandbox stays (sandbox.Spec.Linger).
type ExitReader interface {
	// Exit is nil while the program runs. What ends the sandbox later does not
	// change it, though it may go with the sandbox. fault.KindNotFound where there
	// is no such sandbox, or no program was started by sbx in it.
	Exit(ctx context.Context, id string) (*sandbox.Exit, error)
}

// QuotaReader reads what an account may use and uses.
type QuotaReader interface {
	Quota(ctx context.Context) ([]Quota, error)
}

// Quota is one limit of an account. Nil = not told.
type Quota struct {
	Name  string // "concurrent sandboxes", "cpu"
	Scope string // region or class that it holds for; "" = the account
	Unit  string // "sandboxes", "cores", "MiB"
	Used  *float64
	Limit *float64
}

// HighestUse is the largest share of a limit that is in use, and the name of that limit;
// false where no limit comes with its use.
func HighestUse(quotas []Quota) (share float64, name string, known bool) {
	for _, q := range quotas {
		if q.Used == nil || q.Limit == nil || *q.Limit <= 0 {
			continue
		}
		if used := *q.Used / *q.Limit; !known || used > share {
			share, name, known = used, q.Name, true
		}
	}
	return share, name, known
}

// Recorder gives a control plane's own records of what should exist, for a
// comparison with what does. A failed or partial reading is an error.
type Recorder interface {
	Records(ctx context.Context) iter.Seq2[Record, error]
}

// RecordRemover removes a control plane's record of a sandbox that is gone. It is
// asked only after a read by id has denied the sandbox.
type RecordRemover interface {
	// RemoveRecord returns nil when the request was accepted; a reading of the
	// records shows whether it was heeded. fault.KindUnsupported where the control
	// plane does not know its own record by the id.
	RemoveRecord(ctx context.Context, id string) error
}

// Record is one row of a control plane. Zero values mean "it does not say".
type Record struct {
	SandboxID string
	// Labels are those of the provider's sandbox that the record is about, where the
	// control plane has ids of its own and the provider's is not known.
	Labels    map[string]string
	TaskID    string
	AgentType string
	RawState  string          // the control plane's own word
	Live      sandbox.Verdict // whether, by this row, the sandbox should exist
	KeepAlive bool            // it is meant to outlive its task
	CreatedAt time.Time
	UpdatedAt time.Time
	EndedAt   time.Time
}

// ActivityReader tells when a sandbox last showed life.
type ActivityReader interface {
	Activity(ctx context.Context, id string) (Activity, error)
}

// Activity is what a control plane heard of a sandbox. Heartbeats go on in a
// hung turn and after completion: they are life, not work.
type Activity struct {
	LastWorkAt      time.Time
	LastHeartbeatAt time.Time
	WaitsSince      time.Time // the agent reported that it is done and waits, and no work since; zero = it did not
	Evidence        []sandbox.Evidence
}

// Later joins what two sources know of one sandbox: the later times, all evidence.
func (a Activity) Later(b Activity) Activity {
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

// Linker knows a provider's sandboxes under ids of its own. A Source without it uses
// the provider's ids.
type Linker interface {
	// Link gives the id under which the source knows s, found through what both
	// sides keep: a label, a name. fault.KindNotFound where s is none of its
	// sandboxes; any other error where it is one, or may be, and the link cannot
	// be made: then nothing that the source says is about s.
	Link(ctx context.Context, s sandbox.Sandbox) (string, error)
}

// Source is a control plane beside a provider: it knows events, activity and
// records of that provider's sandboxes, and can neither list nor end them. What
// it can tell is found with As: EventReader, ActivityReader, Recorder, Checker.
type Source interface {
	Named
}

// Explainer says why an ability is missing, in half a sentence for `sbx
// providers`: "the API keeps no output". "" where it has it or knows no reason.
type Explainer interface {
	WhyNot(ability string) string
}

// ProviderCleaner starts a provider's own cleanup, which chooses by itself what
// it ends. It is destructive and stands behind a gate of its own.
type ProviderCleaner interface {
	// Cleanup starts it; emergency takes all that is not critical.
	Cleanup(ctx context.Context, emergency bool) (Cleaned, error)
}

// Cleaned is what a provider's cleanup says of itself; nil = it does not say.
type Cleaned struct{ Count *int64 }

// Clock tells how far a provider's clock is ahead of this machine's, as of its
// last answer; false before the first, and where it does not tell its time.
type Clock interface {
	Skew() (time.Duration, bool)
}
