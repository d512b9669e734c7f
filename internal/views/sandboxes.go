package views

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"sbx/internal/fleet"
	"sbx/internal/ops"
	"sbx/internal/ops/look"
	"sbx/internal/ops/recall"
	"sbx/internal/output"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// SandboxRow is one line of ls: a sandbox and the judgement over it.
type SandboxRow struct {
	sandbox.Sandbox
	Verdict triage.Verdict

	Now time.Time
}

// SandboxRowOf is a judged sandbox as a line of ls.
func SandboxRowOf(j fleet.Judged, now time.Time) SandboxRow {
	return SandboxRow{Sandbox: j.Sandbox, Verdict: j.Verdict, Now: now}
}

// SandboxItem is one sandbox as ls, wait and inspect show it.
type SandboxItem struct {
	Ref            string            `json:"ref" table:""`                     // PROFILE/ID.
	Provider       string            `json:"provider"`                         // The profile.
	ProviderType   string            `json:"provider_type"`                    // The type of the profile, such as e2b.
	ID             string            `json:"id"`                               // The provider's own id.
	Name           string            `json:"name" table:""`                    // The name that it was given; empty without one.
	State          sandbox.State     `json:"state" table:""`                   // The state, in the words of sbx.
	RawState       string            `json:"raw_state"`                        // The state, in the provider's word.
	CreatedAt      *time.Time        `json:"created_at" table:",wide"`         // When the provider made it.
	StartedAt      *time.Time        `json:"started_at"`                       // When its program began.
	AgeSeconds     *float64          `json:"age_seconds" table:"AGE"`          // How old it is.
	AgeSource      sandbox.AgeSource `json:"age_source"`                       // What the age is counted from.
	LastActivityAt *time.Time        `json:"last_activity_at"`                 // The last sign of life that is on record.
	IdleSeconds    *float64          `json:"idle_seconds" table:"IDLE,spare"`  // The time since then.
	Activity       sandbox.Verdict   `json:"activity" table:",wide"`           // Whether it works.
	ExpiresAt      *time.Time        `json:"expires_at" table:"EXPIRES,wide"`  // When the provider ends it.
	Template       string            `json:"template" table:",wide"`           // The template, snapshot or image it was made from; empty where none is known.
	AgentType      string            `json:"agent_type" table:"AGENT,wide"`    // The type of its agent, from its labels.
	TaskID         string            `json:"task_id" table:"TASK"`             // The task it works on, from its labels.
	Owner          string            `json:"owner" table:",wide"`              // Whose it is, from its labels.
	Labels         map[string]string `json:"labels" table:",wide"`             // Its labels.
	CPU            *float64          `json:"cpu" table:",wide"`                // The limit of processors, in cores.
	MemoryMB       *output.Mebibytes `json:"memory_mb" table:"MEM LIMIT,wide"` // The limit of memory, in MiB.
	DiskMB         *output.Mebibytes `json:"disk_mb"`                          // The limit of disk space, in MiB.
	ExitCode       *int              `json:"exit_code" table:"EXIT"`           // The exit code of its program; null while it runs.
	Stuck          sandbox.Verdict   `json:"stuck" table:""`                   // Whether it is stuck.
	StuckReason    string            `json:"stuck_reason" table:"WHY,wide"`    // Why, in fixed words with commas between them.
	Cause          *sandbox.Cause    `json:"cause" table:",wide"`              // Why it is stuck, or what ended it.

	Basis
}

// Basis is what the judgement of a sandbox rests on, behind its cause: the same in every document.
type Basis struct {
	Confidence *sandbox.Confidence `json:"confidence"` // How sure that is.
	Reason     *string             `json:"reason"`     // The judgement in one sentence.
	// True: the sandbox itself was asked (output, events, processor). False: only its record was
	// read.
	Looked bool `json:"looked"`
}

func basisOf(v triage.Verdict) Basis {
	return Basis{Confidence: confidenceOf(v), Reason: orNil(v.Reason), Looked: v.Looked}
}

// SandboxColumns are the columns of a SandboxItem.
func SandboxColumns() []output.Column[SandboxRow] { return output.Columns(SandboxRow.Item) }

// Item is the sandbox as documents have it.
func (r SandboxRow) Item() SandboxItem {
	_, source := r.Age(r.Now)
	idle, known := r.Idle(r.Now)
	item := SandboxItem{
		Ref: r.Ref().String(), Provider: r.Provider, ProviderType: r.ProviderType, ID: r.ID, Name: r.Name, State: r.State, RawState: r.RawState,
		CreatedAt: output.Time(r.CreatedAt), StartedAt: output.Time(r.StartedAt), AgeSeconds: ageSeconds(r.Sandbox, r.Now), AgeSource: source,
		LastActivityAt: output.Time(r.LastActivityAt), IdleSeconds: secondsOrNil(idle, known && !r.State.Ended()), Activity: r.Verdict.Activity,
		ExpiresAt: output.Time(r.ExpiresAt), Template: r.Template, AgentType: r.AgentType, TaskID: r.TaskID, Owner: r.Owner, Labels: r.Labels,
		CPU: r.Limits.CPU, MemoryMB: output.MiB(r.Limits.MemoryBytes), DiskMB: output.MiB(r.Limits.DiskBytes),
		Stuck: r.Verdict.Stuck, StuckReason: r.Verdict.Say(), Cause: orNil(r.Verdict.Cause), Basis: basisOf(r.Verdict),
	}
	if r.Exit != nil {
		item.ExitCode = r.Exit.Code
	}
	return item
}

// orNil is nil for the empty word, and for zero.
func orNil[T comparable](v T) *T {
	if zero := *new(T); v == zero {
		return nil
	}
	return &v
}

// Ending describes in one line the state of the sandbox and, if it has ended, how.
func (r SandboxRow) Ending() string {
	if !r.State.Ended() {
		return r.Ref().String() + " is " + string(r.State)
	}
	return r.Ref().String() + " has ended: " + r.endedWords()
}

// endedWords are the last state of what has ended, how it did so and how long it lived.
func (r SandboxRow) endedWords() string {
	text := string(r.State)
	if e := r.Exit; e != nil {
		text += exitWords(*e)
	}
	if lived := r.EndedAt.Sub(r.CreatedAt); !r.CreatedAt.IsZero() && lived >= time.Second {
		text += ", after " + sandbox.FormatDuration(lived)
	}
	return text
}

func exitWords(e sandbox.Exit) string {
	text := ""
	if e.Code != nil {
		text += ", exit code " + strconv.Itoa(*e.Code)
	}
	if e.Signal != "" {
		text += " by " + e.Signal
	}
	switch e.Cause {
	case sandbox.CauseNone:
	case sandbox.CauseUnknown:
		text += ", cause unknown"
	default:
		text += ", cause " + string(e.Cause) + " (" + string(e.Confidence) + ")"
	}
	return text
}

// EmptyListHint says what could be done where a listing has nothing to show: of which
// profiles it is, whether selectors chose, and whether the only profile runs its sandboxes
// on this machine.
func EmptyListHint(program string, profiles []string, selected, here bool) string {
	switch {
	case selected:
		return "no sandbox matches; `" + program + " ls` without selectors shows the others"
	case len(profiles) == 1 && here:
		return "no sandboxes; only `" + profiles[0] + "` is configured: start one with `" + program + " create -- COMMAND`, or stage an incident with `" + program + " drill`"
	}
	return "no sandboxes; `" + program + " ls --all` also shows ended ones"
}

// FinishSandboxList closes a listing, and says what was not judged. Program is what sbx is
// called.
func FinishSandboxList(list *output.List[SandboxRow], r *look.ListResult, program string, now time.Time) error {
	if r.Truncated {
		list.Truncated()
	}
	keys := ListKeys{Unconfirmed: finishUnconfirmed(list, r, now), Unlisted: unlistedItems(r.Unlisted)}
	keys.Unjudged, keys.UnknownMatches = &r.Census.Unjudged, &r.UnknownMatches
	list.Set(keys)
	list.Remark(StuckSummary(r.Census, program, "ls --look"))
	for _, line := range slices.Concat(ops.UnknownMatchLines(r.UnknownMatches), recall.UnlistedLines(r.Unlisted)) {
		list.Remark(line)
	}
	if r.Ended > 0 {
		list.WhenEmpty("")
		list.Remark(fmt.Sprintf("%d ended not shown; --all shows them", r.Ended))
	}
	return list.Close()
}

// maxUnconfirmed bounds the sandboxes that are named after a list.
const maxUnconfirmed = 10

// ListKeys are the keys of ls beside its items.
type ListKeys struct {
	// The ends that were requested, not acknowledged and not proved since, the oldest first: only
	// with --all, where there are any. Null where the records of requests cannot be read.
	Unconfirmed **[]UnconfirmedEnd `json:"unconfirmed,omitzero"`
	// The sandboxes of the last complete listing that this one does not have and of which no end is on
	// record: only where there are any.
	Unlisted []UnlistedItem `json:"unlisted,omitzero"`
	// How many of the listed could not be judged from their records; null where it was not
	// counted.
	Unjudged *int64 `json:"unjudged"`
	// How many --where leaves unknown, so that they are not listed, by reason; null where they
	// were not counted.
	UnknownMatches *map[string]int `json:"undecided"`
}

// UnconfirmedEnd is a sandbox that may still run after a request to end it.
type UnconfirmedEnd struct {
	Ref    string    `json:"ref"`    // PROFILE/ID.
	At     time.Time `json:"at"`     // When the end was requested.
	Detail string    `json:"detail"` // The answer, or its absence.
}

// UnlistedItem is a sandbox of the last complete listing that is missing in this one.
type UnlistedItem struct {
	Ref string `json:"ref"` // PROFILE/ID.
	// Whether it exists by its id; unknown where it was not read, or could not be.
	Exists sandbox.Verdict `json:"exists"`
	State  *sandbox.State  `json:"state"` // Its state where it exists.
}

func unlistedItems(found []recall.UnlistedSandbox) []UnlistedItem {
	var items []UnlistedItem
	for _, u := range found {
		item := UnlistedItem{Ref: u.Sandbox.Ref().String(), Exists: u.Exists}
		if u.Exists == sandbox.True {
			item.State = &u.Sandbox.State
		}
		items = append(items, item)
	}
	return items
}

// finishUnconfirmed says which sandboxes may still run after a request to end them; nil = none.
func finishUnconfirmed(list *output.List[SandboxRow], r *look.ListResult, now time.Time) **[]UnconfirmedEnd {
	if r.UnconfirmedErr != nil {
		list.Remark(recall.UnreadRequests(r.UnconfirmedErr))
		return new(*[]UnconfirmedEnd) // null: not known, which is no absence
	}
	if len(r.Unconfirmed) == 0 {
		return nil
	}
	ends := []UnconfirmedEnd{}
	for i, u := range r.Unconfirmed {
		ends = append(ends, UnconfirmedEnd{u.Ref.String(), u.Request.At, u.Request.Detail})
		if i < maxUnconfirmed {
			list.Remark(u.Ref.String() + ": " + u.Message(now) + "; " + u.Hint())
		}
	}
	if more := len(ends) - maxUnconfirmed; more > 0 {
		list.Remark(fmt.Sprintf("the ends of %d more are not confirmed; `sbx doctor` lists them", more))
	}
	return new(&ends)
}
