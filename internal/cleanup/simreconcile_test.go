package cleanup_test

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"time"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/journal"
	"sbx/internal/providers"
	"sbx/internal/reconcile"
	"sbx/internal/runs"
	"sbx/internal/safety"
	"sbx/internal/sandbox"
	"sbx/internal/store"
	"sbx/internal/testkit/schedule"
)

// The rules of reconcile here.
const (
	lookGrace   = 5 * time.Minute
	createGrace = 10 * time.Minute
)

// recordsRead is the true content of one reading of a control plane, by id and generation.
type recordsRead struct {
	complete bool
	rows     int
	living   map[string]bool
}

// control is a control plane beside a cloud.
type control struct{ p *client }

// Read gives one row for each sandbox that is on record.
func (c control) Read(ctx context.Context) iter.Seq2[reconcile.Record, error] {
	return func(yield func(reconcile.Record, error) bool) {
		read := &recordsRead{living: map[string]bool{}}
		c.p.s.mu.Lock()
		before := c.p.inc.records[c.p.c.name]
		c.p.inc.records[c.p.c.name] = read
		c.p.s.mu.Unlock()
		ctx, stop := context.WithTimeout(ctx, 20*time.Second) // as the fleet bounds a source that hangs
		defer stop()
		harm, _, err := c.p.request(ctx, "records", "", 0)
		if err == nil {
			err = c.p.answer("records", "")
		}
		if err != nil {
			if !c.p.s.mut.swallowsListErrors {
				yield(reconcile.Record{}, err)
			}
			return
		}
		if harm == "is empty" {
			if read.complete = true; before != nil && before.complete {
				*read = *before // a second reading; the first one counts
			}
			return
		}
		c.p.s.mu.Lock()
		var rows []reconcile.Record
		for _, b := range c.p.c.history {
			if b.record == "" {
				continue
			}
			row := providers.Record{SandboxID: b.id, RawState: b.record, Live: sandbox.VerdictOf(b.record == "living"), CreatedAt: b.created, UpdatedAt: time.Now()}
			rows = append(rows, reconcile.Record{Record: row})
			read.living[fmt.Sprint(b.id, b.gen)] = b.record == "living"
		}
		c.p.s.mu.Unlock()
		for i, row := range rows {
			if harm == "breaks off" && i == len(rows)/2 {
				yield(reconcile.Record{}, c.p.trouble("the records break off"))
				return
			}
			if !yield(row, nil) {
				return
			}
		}
		read.complete, read.rows = true, len(rows)
	}
}

// seenCounts is a process's connection to the store.
type seenCounts struct{ inc *incarnation }

func (s seenCounts) use(what string) error {
	s.inc.s.mu.Lock()
	defer s.inc.s.mu.Unlock()
	if !s.inc.s.step(s.inc, what) {
		return errDead
	}
	return nil
}

func (s seenCounts) CountSeen(ctx context.Context, kind, key string, at time.Time, apart time.Duration) (store.SeenCount, error) {
	if err := s.use("sight " + key); err != nil {
		return store.SeenCount{}, err
	}
	s.inc.s.onSight(s.inc, key)
	seen, err := s.inc.s.store.CountSeen(ctx, kind, key, at, apart)
	if s.inc.s.mut.oneLookProves {
		seen.Count += 5
	}
	return seen, err
}

func (s seenCounts) Forget(ctx context.Context, kind, key string) error {
	if err := s.use("forget " + key); err != nil {
		return err
	}
	return s.inc.s.store.Forget(ctx, kind, key)
}

func (s seenCounts) SeenCounts(ctx context.Context, kind string) (map[string]store.SeenCount, error) {
	if err := s.use("sightings"); err != nil {
		return nil, err
	}
	return s.inc.s.store.SeenCounts(ctx, kind)
}

// engine builds the engine as the command does.
func (b *bulk) engine() (*reconcile.Engine, error) {
	sources := map[string]reconcile.Source{}
	for _, c := range b.inc.s.clouds {
		read := control{&client{b.inc.s, b.inc, c}}.Read
		sources[c.name] = reconcile.Source{Name: "control", Read: read}
	}
	rules := reconcile.Rules{
		Observations: reconcile.MinObservations, Grace: lookGrace, CreateGrace: createGrace, RecordsAge: time.Hour, Observe: true, Delete: b.order.delete,
		Protected: b.world.Protected, Thresholds: b.world.Thresholds,
		Owned: func(profile string, labels map[string]string) bool { return b.inc.s.cloud(profile).owns(labels) },
	}
	if b.inc.s.mut.compare != nil {
		b.inc.s.mut.compare(&rules)
	}
	return reconcile.New(reconcile.Engine{Fleet: b.fleet, Now: b.inc.now, Rules: rules, SeenCounts: seenCounts{b.inc}, Sources: sources})
}

// compare compares records with reality and ends proved orphans.
func (b *bulk) compare() error {
	e, err := b.engine()
	if err != nil {
		return err
	}
	return b.locked(func() error {
		plan := e.Plan(b.inc.ctx)
		b.inc.s.onCompare(b, plan)
		w, err := journal.Create(mount{b.inc}, b.id, b.inc.now)
		if err != nil {
			return err
		}
		defer func() { _ = w.Close() }()
		if err := w.Append(runs.EntryBegin, runs.Begin{Verb: "reconcile"}); err != nil {
			return err
		}
		limits := reconcile.Limits{Limits: safety.Limits{MaxDelete: b.order.maxDelete, MaxFraction: b.order.maxFraction, Allowed: b.order.production}, RecordsAge: time.Hour}
		for _, c := range b.inc.s.clouds {
			if c.production {
				limits.Production = append(limits.Production, c.name)
			}
		}
		done, err := e.Fix(b.inc.ctx, plan, reconcile.How{Limits: limits, Record: &runs.Writer{Journal: b.inc.s.mut.journal(w)}, Wait: b.order.wait, By: "simulation"})
		if err != nil {
			return err
		}
		var endings []sandbox.Ending
		for d := range done {
			endings = append(endings, d.Ending)
			if d.Row.Action == reconcile.ActTerminate {
				b.inc.s.onEnding(b.inc, d.Ending)
			}
		}
		verdict := fleet.Verdict(endings, false)
		_ = w.Append(runs.EntryConclusion, runs.Conclusion{Counts: fleet.Count(endings), ExitCode: fault.ExitCode(verdict)})
		return verdict
	})
}

// onSight records an observation that truly showed a sandbox without a living record, with
// both sides read completely.
func (s *sim) onSight(inc *incarnation, key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ref, _, _ := strings.Cut(key, " ") // a key holds more than the reference
	profile, id, _ := strings.Cut(ref, "/")
	seen, read := inc.listings[profile], inc.records[profile]
	if inc.dead || seen == nil || read == nil || !seen.complete || !read.complete || read.rows == 0 {
		return
	}
	gen, listed := seen.gens[id]
	if v, read := inc.sights[sandbox.Ref{Provider: profile, ID: id}]; read && !v.unreadable {
		gen = v.gen // the read by id came after the listing, and the id may have been reused in between
	}
	if listed && !read.living[fmt.Sprint(id, gen)] {
		key = fmt.Sprint(ref, gen)
		s.suspect[key] = append(s.suspect[key], s.wall())
	}
}

// onCompare records which profiles were read completely on both sides.
func (s *sim) onCompare(b *bulk, plan reconcile.Plan) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b.inc.dead {
		return
	}
	run := &runTruth{order: b.order, listings: b.inc.listings, items: map[sandbox.Ref]itemTruth{}, requested: map[sandbox.Ref]int{}, compares: true}
	for _, c := range s.clouds {
		seen, read := b.inc.listings[c.name], b.inc.records[c.name]
		if seen == nil || read == nil || !seen.complete || !read.complete || read.rows == 0 {
			continue
		}
		for id, gen := range seen.gens {
			run.items[sandbox.Ref{Provider: c.name, ID: id}] = itemTruth{gen: gen}
		}
	}
	s.runs[b.id], b.inc.run = run, b.id
	s.Logf("%s compares in %s: %d rows act, %d errors", b.inc, b.id, len(plan.Acting()), len(plan.Errors))
}

// proved checks the end of an orphan or a leak against the safety rules.
func (s *sim) proved(inc *incarnation, run *runTruth, ref sandbox.Ref) {
	v, there := inc.sights[ref]
	read, c := inc.records[ref.Provider], s.cloud(ref.Provider)
	if !there || v.unreadable {
		s.Breakf("%s asks %s to end without having read it", inc, ref)
		return
	}
	_, listed := run.items[ref]
	for _, why := range []struct {
		wrong bool
		text  string
	}{
		{read == nil || !read.complete || read.rows == 0, "the records were not read whole, or are empty"},
		{read != nil && read.living[fmt.Sprint(ref.ID, v.gen)], "it is on record as living"},
		{!listed, "it was not in a look at both sides"},
		{v.created.IsZero(), "its age is unknown"},
		{s.believed(v).Sub(v.created) <= createGrace, "its record may still be written"},
		{!c.owns(v.labels), "it is not ours"},
		{v.state == sandbox.StateUnknown, "its state is unknown"},
		{v.state == sandbox.StateStopped && !run.order.delete, "it is stopped"},
		{!apart(s.suspect[fmt.Sprint(ref.String(), v.gen)]), "it was seen once only"},
	} {
		if why.wrong {
			s.Breakf("%s ends %s, a suspect: %s", inc, ref, why.text)
		}
	}
	if why := s.unprotected(ref, v); why != "" {
		s.Breakf("%s ends %s, a suspect: %s", inc, ref, why)
	}
	_, recorded := read.living[fmt.Sprint(ref.ID, v.gen)]
	if quiet := s.quiet(c, v, v.worked); !recorded && v.state == sandbox.StateRunning && v.recordTells && quiet >= 0 && quiet <= time.Minute {
		s.Breakf("%s ends %s, which nobody has on record and which showed life %s ago", inc, ref, quiet)
	}
}

// apart reports whether two observations are far enough apart.
func apart(looks []time.Time) bool {
	for _, a := range looks {
		for _, b := range looks {
			if b.Sub(a) >= lookGrace {
				return true
			}
		}
	}
	return false
}

// runCompare reconciles several times, with pauses.
func (s *sim) runCompare(e errand) {
	for n := range e.compare {
		inc := s.boot(e.name, "reconcile", e.crashes && n == 0)
		s.interrupts(inc, e.breaks)
		_, _ = inc.goes(inc.bulk(e.order).compare)
		inc.kill(context.Canceled)
		schedule.Sleep(context.Background(), time.Duration(float64(8*time.Minute)*s.Roll("compares again", inc.n)))
	}
}
