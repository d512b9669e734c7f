package snapshot

import (
	"errors"
	"math"
	"slices"
	"time"

	"sbx/internal/cron"
	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

const (
	maxSamples   = 120     // of one sandbox, the newest
	leastSamples = 2       // so many always
	allSamples   = 300_000 // of all sandboxes
	maxRuns      = 100     // of cleanup, the newest
	maxCounts    = 600     // of a profile, the newest
)

// Redact takes secrets out of a text.
type Redact func(string) string

// NewFailure is an error as it is recorded; nil for none.
func NewFailure(err error, redact Redact) *Failure {
	if err == nil {
		return nil
	}
	return &Failure{Kind: string(fault.KindOf(err)), Message: redact(err.Error())}
}

// Err is the error; nil for none.
func (f *Failure) Err() error {
	if f == nil {
		return nil
	}
	return &fault.Error{Kind: fault.Kind(f.Kind).Row().Kind, Err: errors.New(f.Message)}
}

// SamplesEach is how many samples of each sandbox are recorded where so many were looked at, so
// that the document keeps below MaxFile.
func SamplesEach(looked int) int {
	return max(leastSamples, min(maxSamples, allSamples/max(1, looked)))
}

// NewSandbox records a row and its judgement, with so many samples at most.
func NewSandbox(row sandbox.Sandbox, j fleet.Judged, samples int, redact Redact) Sandbox {
	b := Sandbox{
		ID: row.ID, Name: redact(row.Name), State: row.State, RawState: row.RawState,
		CreatedAt: row.CreatedAt.UTC(), StartedAt: row.StartedAt.UTC(), FirstSeenAt: row.FirstSeenAt.UTC(), LastActivityAt: row.LastActivityAt.UTC(),
		ActivityBasis: row.ActivityBasis, ExpiresAt: row.ExpiresAt.UTC(), EndingAt: row.EndingAt.UTC(), EndsBy: row.EndsBy.UTC(), EndingSeenAt: row.EndingSeenAt.UTC(), EndedAt: row.EndedAt.UTC(), Activity: row.Activity,
		ClockSkew: row.ClockSkew, KeptUntil: row.KeptUntil.UTC(), Node: row.Node, EndNote: row.EndNote, Template: row.Template, AgentType: row.AgentType, TaskID: row.TaskID,
		MemoryBytes: row.Limits.MemoryBytes, CPU: row.Limits.CPU, PIDs: row.Limits.PIDs, Enforcement: row.Limits.Enforcement,
		JudgedAt: j.At.UTC(),
	}
	if _, known := sandbox.ParseState(string(b.State)); !known {
		b.State = sandbox.StateUnknown
	}
	if e := row.Exit; e != nil {
		b.Exit = &Exit{Code: e.Code, Raw: redact(e.Raw), Signal: e.Signal, Class: e.Class, Cause: e.Cause, Confidence: e.Confidence}
	}
	troubles := row.Troubles
	if j.Facts != nil && len(j.Facts.Sandbox.Troubles) > 0 { // a look sees more than a listing
		troubles = j.Facts.Sandbox.Troubles
	}
	for _, t := range troubles {
		b.Troubles = append(b.Troubles, Trouble{ID: t.ID, Say: redact(t.Say), Cause: t.Cause, Confidence: t.Confidence})
	}
	if j.Facts != nil {
		b.Look = newLook(row, j.Facts, samples, redact)
	}
	return b
}

// newLook records what was observed. Whatever quotes the log of a sandbox is left out.
func newLook(row sandbox.Sandbox, f *fleet.Facts, samples int, redact Redact) *Look {
	l := &Look{
		AskedAt:   f.AskedAt.UTC(),
		Processes: f.Processes, Exited: f.Exited, Finished: f.Recorded.Finished, TimeLimitsHit: f.Recorded.TimeLimitsHit, Answers: f.Answers,
		SourceFailed: NewFailure(f.SourceErr, redact), LookFailed: NewFailure(f.LookErr, redact),
		Missing: f.Missing, TracksTasks: f.TracksTasks, ProfileRead: f.ProfileRead, QuotaUsed: f.QuotaUsed,
		Samples: newSeries(f.Samples, samples, redact), Earlier: newSeries(f.Recorded.Samples, samples, redact),
	}
	l.ActivityBasis = f.Sandbox.ActivityBasis
	if f.Sandbox.State != row.State {
		l.State = f.Sandbox.State
	}
	if !f.Sandbox.LastActivityAt.Equal(row.LastActivityAt) {
		l.LastActivityAt = f.Sandbox.LastActivityAt.UTC()
	}
	if f.Recorded.FinishedBy.What != "" {
		by := f.Recorded.FinishedBy
		by.Value, by.At = redact(by.Value), by.At.UTC()
		l.FinishedBy = &by
	}
	if w := f.Work; w != nil {
		l.Work = &Work{w.LastWorkAt.UTC(), w.LastHeartbeatAt.UTC(), w.WaitsSince.UTC(), w.Silence.Seconds()}
	}
	if g := f.Logs; g != nil {
		l.Logs = &Logs{Complete: g.Complete, Lines: g.Lines, Last: g.Last.UTC(), Errors: g.Errors, Calling: g.Calling, Repeats: g.Repeat.Count}
		for _, h := range g.Hits {
			l.Logs.Hits = append(l.Logs.Hits, Hit{h.Pattern.ID, h.Count, h.Last.UTC()})
		}
	}
	return l
}

// Row is the row of the listing.
func (b *Sandbox) Row(p *Profile) sandbox.Sandbox {
	s := sandbox.Sandbox{
		Provider: p.Name, ProviderType: p.Type, ID: b.ID, Name: b.Name, State: b.State, RawState: b.RawState,
		CreatedAt: b.CreatedAt, StartedAt: b.StartedAt, FirstSeenAt: b.FirstSeenAt, LastActivityAt: b.LastActivityAt,
		ActivityBasis: b.ActivityBasis, ExpiresAt: b.ExpiresAt, EndingAt: b.EndingAt, EndsBy: b.EndsBy, EndingSeenAt: b.EndingSeenAt, EndedAt: b.EndedAt, Activity: b.Activity,
		ClockSkew: b.ClockSkew, KeptUntil: b.KeptUntil, Node: b.Node, EndNote: b.EndNote, Template: b.Template, AgentType: b.AgentType, TaskID: b.TaskID,
		Limits: sandbox.Limits{MemoryBytes: b.MemoryBytes, CPU: b.CPU, PIDs: b.PIDs, Enforcement: b.Enforcement},
	}
	if e := b.Exit; e != nil {
		s.Exit = &sandbox.Exit{Code: e.Code, Raw: e.Raw, Signal: e.Signal, Class: e.Class, Cause: e.Cause, Confidence: e.Confidence}
	}
	for _, t := range b.Troubles {
		s.Troubles = append(s.Troubles, sandbox.Trouble{ID: t.ID, Say: t.Say, Cause: t.Cause, Confidence: t.Confidence})
	}
	return s
}

// Recorded is the row with what was observed, for fleet.JudgeRecorded. Patterns of a log are those
// of today, by their ids.
func (b *Sandbox) Recorded(p *Profile, patterns map[string]triage.Pattern) fleet.Recorded {
	r := fleet.Recorded{Row: b.Row(p), At: b.JudgedAt}
	l := b.Look
	if l == nil {
		return r
	}
	f := &fleet.Facts{
		AskedAt: l.AskedAt,
		Sandbox: r.Row, Samples: l.Samples.usages(), Processes: l.Processes, Exited: l.Exited, Answers: l.Answers,
		SourceErr: l.SourceFailed.Err(), LookErr: l.LookFailed.Err(),
		Missing: l.Missing, TracksTasks: l.TracksTasks, ProfileRead: l.ProfileRead, QuotaUsed: l.QuotaUsed,
		Recorded: fleet.SandboxHistory{Finished: l.Finished, TimeLimitsHit: l.TimeLimitsHit, Samples: l.Earlier.usages()},
	}
	if f.Sandbox.ActivityBasis = l.ActivityBasis; l.State != "" {
		f.Sandbox.State = l.State
	}
	if !l.LastActivityAt.IsZero() {
		f.Sandbox.LastActivityAt = l.LastActivityAt
	}
	if l.FinishedBy != nil {
		f.Recorded.FinishedBy = *l.FinishedBy
	}
	if w := l.Work; w != nil {
		f.Work = &providers.Activity{
			LastWorkAt: w.LastWorkAt, LastHeartbeatAt: w.LastHeartbeatAt, WaitsSince: w.WaitsSince, Silence: time.Duration(math.Round(w.SilenceSeconds * float64(time.Second))),
		}
	}
	if l.Logs != nil {
		f.Logs = l.Logs.findings(patterns)
	}
	r.Facts = f
	return r
}

func (g *Logs) findings(patterns map[string]triage.Pattern) *triage.LogFindings {
	found := &triage.LogFindings{Complete: g.Complete, Lines: g.Lines, Last: g.Last, Errors: g.Errors, Calling: g.Calling, Repeat: triage.Repeat{Count: g.Repeats}}
	for _, h := range g.Hits {
		if pattern, known := patterns[h.Pattern]; known {
			found.Hits = append(found.Hits, triage.Hit{Pattern: pattern, Count: h.Count, Last: h.Last})
		}
	}
	return found
}

// Patterns are the patterns of logs by id.
func Patterns() map[string]triage.Pattern {
	all := map[string]triage.Pattern{}
	for _, p := range triage.Patterns() {
		all[p.ID] = p
	}
	return all
}

// NewRecords records the figures that no provider reports.
func NewRecords(sig triage.FleetSignals) Records {
	r := Records{
		Attempts: sig.Attempts, AttemptsTimedOut: sig.AttemptsTimedOut, AttemptsInactive: sig.AttemptsInactive, Stops: sig.Stops, StopsFailed: sig.StopsFailed,
		CleanupRead: sig.CleanupRead, CleanupSeen: sig.CleanupSeen.UTC(), CleanupFailures: sig.CleanupFailures, CleanupRefusals: sig.CleanupRefusals,
		CreateFailures: sig.CreateFailures, MaxSandboxes: sig.MaxSandboxes,
		ActiveOver: sig.OverFor.Active.Seconds(), NormalOver: sig.OverFor.Normal.Seconds(), EscalateOver: sig.OverFor.Escalate.Seconds(),
	}
	counts := slices.SortedStableFunc(slices.Values(sig.History), func(a, b triage.ActiveCount) int { return a.At.Compare(b.At) })
	for _, c := range counts[max(0, len(counts)-maxCounts):] {
		r.History = append(r.History, Count{c.At.UTC(), c.Active})
	}
	return r
}

// Signals are the figures.
func (r *Records) Signals() triage.FleetSignals {
	sig := triage.FleetSignals{
		Attempts: r.Attempts, AttemptsTimedOut: r.AttemptsTimedOut, AttemptsInactive: r.AttemptsInactive, Stops: r.Stops, StopsFailed: r.StopsFailed,
		CleanupRead: r.CleanupRead, CleanupSeen: r.CleanupSeen, CleanupFailures: r.CleanupFailures, CleanupRefusals: r.CleanupRefusals,
		CreateFailures: r.CreateFailures, MaxSandboxes: r.MaxSandboxes,
		OverFor: triage.OverFor{Active: secondsOf(r.ActiveOver), Normal: secondsOf(r.NormalOver), Escalate: secondsOf(r.EscalateOver)},
	}
	for _, c := range r.History {
		sig.History = append(sig.History, triage.ActiveCount{At: c.At, Active: c.Active})
	}
	return sig
}

func secondsOf(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }

// NewCleanup records the runs of cleanup, newest first.
func NewCleanup(profiles []string, runs []cron.Run, unreadable int) *Cleanup {
	c := &Cleanup{Profiles: profiles, Runs: []Run{}, Unreadable: unreadable}
	sorted := slices.SortedStableFunc(slices.Values(runs), func(a, b cron.Run) int { return b.StartedAt.Compare(a.StartedAt) })
	for _, r := range sorted[:min(len(sorted), maxRuns)] {
		c.Runs = append(c.Runs, Run{string(r.Layer), r.Shortfall, r.StartedAt.UTC(), r.EndedAt.UTC(), r.ExitCode, r.Refused, r.Succeeded, r.Unowned})
	}
	return c
}

// CronRuns are the runs.
func (c *Cleanup) CronRuns() []cron.Run {
	var all []cron.Run
	for _, r := range c.Runs {
		all = append(all, cron.Run{
			Layer: cron.Layer(r.Layer), Shortfall: r.Shortfall, StartedAt: r.StartedAt, EndedAt: r.EndedAt, ExitCode: r.ExitCode,
			Refused: r.Refused, Succeeded: r.Succeeded, Unowned: r.Unowned,
		})
	}
	return all
}

// NewLog records the findings of a log of another job; nil for none.
func NewLog(l *triage.CleanupLog) *Log {
	if l == nil {
		return nil
	}
	w := &Log{Lines: l.Lines, Matched: l.Matched, Dated: l.Dated, First: l.First.UTC(), Last: l.Last.UTC(), ReadAt: l.ReadAt.UTC(), NotFound: l.NotFound, Runs: []LogRun{}}
	for _, r := range l.Runs[max(0, len(l.Runs)-maxCounts):] {
		w.Runs = append(w.Runs, LogRun{r.StartedAt.UTC(), r.EndedAt.UTC(), r.Completed, r.Found, r.Removed, r.Failed, r.Error != ""})
	}
	return w
}

// CleanupLog is the log; nil for none.
func (w *Log) CleanupLog() *triage.CleanupLog {
	if w == nil {
		return nil
	}
	l := &triage.CleanupLog{Lines: w.Lines, Matched: w.Matched, Dated: w.Dated, First: w.First, Last: w.Last, ReadAt: w.ReadAt, NotFound: w.NotFound}
	for _, r := range w.Runs {
		run := triage.CleanupLogRun{StartedAt: r.StartedAt, EndedAt: r.EndedAt, Completed: r.Completed, Found: r.Found, Removed: r.Removed, Failed: r.Failed}
		if r.FailedAll {
			run.Error = "it failed"
		}
		l.Runs = append(l.Runs, run)
	}
	return l
}

// NewProfile records the figures of a profile: read has what its provider sent and known says that
// its figures are all there. The sandboxes are the caller's.
func NewProfile(read fleet.ProviderStats, known bool, quota *fleet.ProviderQuota, redact Redact) Profile {
	p := Profile{
		Name: read.Provider, Type: read.ProviderType, Counted: read.Counted, ListFailed: NewFailure(read.ItemsErr, redact),
		Records: NewRecords(read.History), MayRun: read.MayRun, Sandboxes: []Sandbox{},
	}
	if quota != nil {
		p.QuotaFail = NewFailure(quota.Err, redact)
		for _, q := range quota.Quotas {
			p.Quotas = append(p.Quotas, Quota{q.Name, q.Scope, q.Unit, q.Used, q.Limit})
		}
	}
	if s := read.Stats; known {
		p.Stats = &Stats{s.Active, s.Provisioning, s.Terminating, s.TotalCreated, s.TotalDestroyed, s.TimedOut}
	}
	return p
}

// ProviderStats are the figures; nil where the provider did not answer.
func (p *Profile) ProviderStats(rows []sandbox.Sandbox) *fleet.ProviderStats {
	if p.Stats == nil {
		return nil
	}
	s := p.Stats
	stats := &fleet.ProviderStats{
		Provider: p.Name, ProviderType: p.Type, Counted: p.Counted, ItemsErr: p.ListFailed.Err(), History: p.Records.Signals(), MayRun: p.MayRun,
		Stats: providers.Stats{Active: s.Active, Provisioning: s.Provisioning, Terminating: s.Terminating, TotalCreated: s.TotalCreated, TotalDestroyed: s.TotalDestroyed, TimedOut: s.TimedOut},
	}
	if stats.ItemsErr == nil {
		stats.Items = rows
	}
	return stats
}

// ProviderQuota are the quotas of the profile; false where it has none.
func (p *Profile) ProviderQuota() (fleet.ProviderQuota, bool) {
	all := fleet.ProviderQuota{Provider: p.Name, Err: p.QuotaFail.Err()}
	for _, q := range p.Quotas {
		all.Quotas = append(all.Quotas, providers.Quota{Name: q.Name, Scope: q.Scope, Unit: q.Unit, Used: q.Used, Limit: q.Limit})
	}
	return all, all.Err != nil || len(all.Quotas) > 0
}
