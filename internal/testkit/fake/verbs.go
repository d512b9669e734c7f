package fake

import (
	"context"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

var _ providers.Provider = (*Provider)(nil)

// keptFor is how long a listing without Query.All has an ended sandbox.
const keptFor = time.Hour

// List streams page by page; each page is one request.
func (p *Provider) List(ctx context.Context, q providers.Query) iter.Seq2[sandbox.Sandbox, error] {
	return func(yield func(sandbox.Sandbox, error) bool) {
		ids, flap := p.beginListing(q)
		for page, first := 1, true; first || len(ids) > 0; page, first = page+1, false {
			f, err := p.beginRequest(ctx, OpList, "", page)
			if err != nil {
				yield(sandbox.Sandbox{}, err)
				return
			}
			n := min(p.o.PageSize, len(ids))
			if f.Skip {
				ids = ids[n:]
				continue
			}
			for _, s := range p.readPage(ids[:n], q, flap) {
				if !yield(s, nil) {
					return
				}
			}
			ids = ids[n:]
		}
	}
}

// beginListing is the order of one listing, and whether Options.Flap applies to it.
func (p *Provider) beginListing(q providers.Query) ([]string, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.listings++
	if q.Live {
		p.liveListings++
	}
	return slices.Clone(p.order), p.listings%2 == 1
}

// Listings is how many listings began, and how many of them with Query.Live.
func (p *Provider) Listings() (all, live int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.listings, p.liveListings
}

func (p *Provider) readPage(ids []string, q providers.Query, flap bool) []sandbox.Sandbox {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.o.Now()
	out := make([]sandbox.Sandbox, 0, len(ids))
	for _, id := range ids {
		b := p.boxes[id]
		p.applyReadLies(b, now)
		s, shown := p.listedAs(b, now, flap)
		if !shown || !matchesQuery(s, q, now) {
			continue
		}
		if p.o.EndsUnlisted {
			s.EndedAt = time.Time{}
		}
		out = append(out, s)
		if p.hasLie(LieListsTwice) {
			out = append(out, s)
		}
	}
	return out
}

// listedAs is the record of the box in a listing; false where the listing does not have it. The lock
// is held.
func (p *Provider) listedAs(b *box, now time.Time, flap bool) (sandbox.Sandbox, bool) {
	if now.Before(b.listed) {
		return sandbox.Sandbox{}, false
	}
	if p.whatRemains(b, now) == AfterKept {
		return p.listedView(b, now), true
	}
	at, _ := b.endState(now)
	if !flap || now.Sub(at) >= p.o.Flap {
		return sandbox.Sandbox{}, false
	}
	s := b.s.Clone() // as in a stale cache
	s.RawState = string(s.State)
	return s, true
}

func matchesQuery(s sandbox.Sandbox, q providers.Query, now time.Time) bool {
	if len(q.States) > 0 && !slices.Contains(q.States, s.State) {
		return false
	}
	if !q.All && s.State.Ended() && now.Sub(s.EndedAt) > keptFor {
		return false
	}
	for k, v := range q.Labels {
		if have, ok := s.Labels[k]; !ok || have != v {
			return false
		}
	}
	return true
}

// Get reads one sandbox by its id.
func (p *Provider) Get(ctx context.Context, id string) (sandbox.Sandbox, error) {
	return readBox(ctx, p, OpGet, id, func(b *box, now time.Time) (sandbox.Sandbox, error) { return p.listedView(b, now), nil })
}

// Terminate requests the end; the sandbox is terminating for Options.EndFor.
func (p *Provider) Terminate(ctx context.Context, id string, o providers.TerminateOptions) error {
	f, err := p.beginRequest(ctx, OpTerminate, id, 0)
	if err != nil {
		return err
	}
	if err := p.acceptEnd(id, o, f.Skip); err != nil || f.Skip {
		return err
	}
	return p.finishRequest(ctx, f, OpTerminate, id)
}

func (p *Provider) acceptEnd(id string, o providers.TerminateOptions, skip bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	b, err := p.findBox(OpTerminate, id)
	if err != nil {
		return err
	}
	now := p.o.Now()
	if at, _ := b.endState(now); !at.IsZero() && !o.Delete && !p.hasLie(LieAnswersTwice) {
		return p.newRefusal(fault.KindGone, OpTerminate, id, "it has ended")
	}
	if skip {
		return nil
	}
	b.deleted = b.deleted || o.Delete
	if b.asked.IsZero() {
		b.asked, b.by = now, o.By
	}
	p.notifyChange()
	return nil
}

var _ providers.Launcher = (*Provider)(nil)

// Create makes a sandbox that runs spec.Command; see Exec for the commands of the fake. A program whose
// name begins with "no-such-" is missing.
func (p *Provider) Create(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	f, err := p.beginRequest(ctx, OpCreate, "", 0)
	if err != nil {
		return sandbox.Sandbox{}, err
	}
	if spec.RequireHardLimit {
		return sandbox.Sandbox{}, p.newRefusal(fault.KindRefused, OpCreate, "", "a sandbox in memory has no hard limit")
	}
	if len(spec.Command) > 0 && strings.HasPrefix(spec.Command[0], "no-such-") {
		return sandbox.Sandbox{}, p.newRefusal(fault.KindCommandNotFound, OpCreate, "", "%q was not found", spec.Command[0])
	}
	program := parseCommand(spec.Command, spec.Env)
	if p.o.Program != nil {
		if s, ok := p.o.Program(spec); ok {
			program = s.toProgram()
		}
	}
	made := p.addCreated(spec, program)
	if err := p.finishRequest(ctx, f, OpCreate, ""); err != nil {
		return sandbox.Sandbox{}, err
	}
	return made, nil
}

func (p *Provider) addCreated(spec sandbox.Spec, program program) sandbox.Sandbox {
	p.mu.Lock()
	defer p.mu.Unlock()
	b := p.newBox(spec, program)
	p.storeBox(b)
	p.notifyChange()
	return p.listedView(b, p.o.Now())
}

func (p *Provider) newBox(spec sandbox.Spec, program program) *box {
	now := p.o.Now()
	b := &box{
		program:       program,
		keepAfterExit: spec.KeepAfterExit && !p.hasLie(LieEndsWithProgram),
		listed:        now.Add(p.o.ListLag),
		ready:         now.Add(p.o.ProvisionFor),
		endFor:        p.o.EndFor,
		env:           slices.Clone(spec.Env),
		s: sandbox.Sandbox{
			Name: spec.Name, State: sandbox.StateRunning, CreatedAt: now, Activity: sandbox.Unknown,
			Template: spec.Template, AgentType: spec.AgentType, TaskID: spec.TaskID, Labels: maps.Clone(spec.Labels),
			Limits: specLimits(spec),
		},
	}
	if spec.TTL > 0 {
		b.s.ExpiresAt, b.enforced = now.Add(spec.TTL), true
	}
	if p.hasLie(LieOwnNonce) && b.s.Labels[sandbox.LabelNonce] != "" {
		b.s.Labels[sandbox.LabelNonce] = "made-here"
	}
	if p.hasLie(LieEmptyLabels) {
		b.s.Name, b.s.TaskID, b.s.Labels = "", "", nil
	}
	if p.hasLie(LieEnvInLogs) && len(spec.Env) > 0 {
		b.logs = append(b.logs, sandbox.LogLine{At: now, Stream: "stdout", Text: "started with " + spec.Env[0]})
	}
	return b
}

func specLimits(spec sandbox.Spec) sandbox.Limits {
	l := sandbox.Limits{
		MemoryBytes: positiveOrNil(spec.MemoryBytes), CPU: positiveOrNil(spec.CPU),
		DiskBytes: positiveOrNil(spec.DiskBytes), PIDs: positiveOrNil(spec.PIDs),
	}
	if l != (sandbox.Limits{}) {
		l.Enforcement = sandbox.EnforcementNone
	}
	return l
}

// positiveOrNil is nil for "not set".
func positiveOrNil[T int64 | float64](v T) *T {
	if v <= 0 {
		return nil
	}
	return &v
}

// Bare is the fake without any ability.
func (p *Provider) Bare() providers.Provider {
	return struct{ providers.Provider }{p}
}

// Only is the fake with one ability by its name in providers.Abilities; with an unknown name it has
// none.
func (p *Provider) Only(ability string) providers.Provider { //nolint:funlen // one case an ability
	bare := p.Bare()
	switch ability {
	case "logs":
		return struct {
			providers.Provider
			providers.LogReader
		}{bare, p}
	case "usage":
		return struct {
			providers.Provider
			providers.UsageReader
		}{bare, p}
	case "history":
		return struct {
			providers.Provider
			providers.UsageHistoryReader
		}{bare, p}
	case "processes":
		return struct {
			providers.Provider
			providers.ProcessLister
		}{bare, p}
	case "stats":
		return struct {
			providers.Provider
			providers.StatsReader
		}{bare, p}
	case "create":
		return struct {
			providers.Provider
			providers.Launcher
		}{bare, p}
	case "admit":
		return struct {
			providers.Provider
			providers.Admitter
		}{bare, p}
	case "exec":
		return struct {
			providers.Provider
			providers.Commander
		}{bare, p}
	case "probe":
		return struct {
			providers.Provider
			providers.Prober
		}{bare, p}
	case "events":
		return struct {
			providers.Provider
			providers.EventReader
		}{bare, p}
	case "labels":
		return struct {
			providers.Provider
			providers.LabelEditor
		}{bare, p}
	case "extend":
		return struct {
			providers.Provider
			providers.Extender
		}{bare, p}
	case "cleanup":
		return struct {
			providers.Provider
			providers.ProviderCleaner
		}{bare, p}
	case "sweep":
		return struct {
			providers.Provider
			providers.Sweeper
		}{bare, p}
	case "exit":
		return struct {
			providers.Provider
			providers.ExitReader
		}{bare, p}
	case "activity":
		return struct {
			providers.Provider
			providers.ActivityReader
		}{bare, p}
	case "quota":
		return struct {
			providers.Provider
			providers.QuotaReader
		}{bare, p}
	case "records":
		return struct {
			providers.Provider
			providers.Recorder
		}{bare, p}
	case "verify":
		return struct {
			providers.Provider
			providers.Verifier
		}{bare, p}
	case "doctor":
		return struct {
			providers.Provider
			providers.Checker
		}{bare, p}
	}
	return bare
}
