package fleet_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/fake"
	"sbx/internal/triage"
)

// bulkReader is a provider that reads the usage of many in one request. Nobody counts the activity
// of its sandboxes.
type bulkReader struct {
	providers.Provider
	providers.LogReader
	providers.UsageReader
	providers.Prober

	fake *fake.Provider
	err  error
	cpu  func(id string) *float64 // nil = it is missing from the answer

	mu    sync.Mutex
	calls [][]string
}

func (b *bulkReader) use(p *fake.Provider) {
	b.fake, b.Provider, b.LogReader, b.UsageReader, b.Prober = p, p, p, p, p
}

func (b *bulkReader) UsageBatch() int { return 10 }

func (b *bulkReader) UsageOfMany(_ context.Context, ids []string) (map[string]sandbox.Usage, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls = append(b.calls, slices.Clone(ids))
	found := map[string]sandbox.Usage{}
	for _, id := range ids {
		if cpu := b.cpu(id); cpu != nil {
			found[id] = sandbox.Usage{At: time.Now(), CPUPercent: cpu, Source: "bulk"}
		}
	}
	return found, b.err
}

// bulkOf has n running sandboxes of an hour, whose log does not capture their output.
func bulkOf(n int) *bulkReader {
	b := &bulkReader{cpu: func(string) *float64 { return new(20.0) }}
	b.use(fake.New(fake.Options{Name: "prod", PartialLogs: true}))
	for i := range n {
		made := time.Now().Add(-time.Hour)
		b.fake.Add(fake.Seed{Sandbox: sandbox.Sandbox{ID: fmt.Sprintf("box-%03d", i), CreatedAt: made, StartedAt: made}, Usage: func(now time.Time) sandbox.Usage {
			return sandbox.Usage{At: now, CPUSeconds: new(0.0)}
		}})
	}
	return b
}

func looking() fleet.Judging {
	return fleet.Judging{Now: time.Now, Look: true, Thresholds: func(sandbox.Sandbox) triage.Thresholds { return triage.DefaultThresholds() }}
}

// TestALookAtManyAsksOnlyWhatMayChangeTheVerdict: the figures of all come in batches, and those at
// work are asked nothing else.
func TestALookAtManyAsksOnlyWhatMayChangeTheVerdict(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := bulkOf(45)
		b.cpu = func(id string) *float64 {
			switch id {
			case "box-007":
				return new(0.0)
			case "box-008":
				return nil
			case "box-009":
				return new(100.0)
			}
			return new(20.0)
		}
		f := of(b)
		items := f.Collect(t.Context(), providers.Query{}).Items
		how := looking()
		var last atomic.Int64
		how.Seen = func(p fleet.LookProgress) {
			assert.Equal(t, 45, p.All)
			last.Store(int64(p.Done))
		}
		for i, j := range f.Judge(t.Context(), items, how) {
			assert.Equal(t, items[i].ID, j.Sandbox.ID)
			assert.True(t, j.Verdict.Looked)
			open := slices.Contains([]string{"box-007", "box-008", "box-009"}, j.Sandbox.ID)
			assert.Equal(t, open, j.Verdict.Stuck != sandbox.False, j.Sandbox.ID)
		}
		assert.Len(t, b.calls, 5)
		assert.EqualValues(t, 45, last.Load())
		asked := map[string]bool{}
		for _, c := range b.fake.Calls(fake.OpUsage, fake.OpLogs, fake.OpProbe) {
			asked[c.ID] = true
		}
		assert.Equal(t, map[string]bool{"box-007": true, "box-008": true, "box-009": true}, asked)
	})
}

// TestABatchThatFailsCostsNoVerdict: each is looked at by itself, and a request that the API lacks
// is sent once.
func TestABatchThatFailsCostsNoVerdict(t *testing.T) {
	t.Parallel()
	for kind, calls := range map[fault.Kind]int{fault.KindUnsupported: 1, fault.KindUnavailable: 3} {
		synctest.Test(t, func(t *testing.T) {
			b := bulkOf(30)
			b.err, b.cpu = fault.New(kind, "no"), func(string) *float64 { return nil }
			f := of(b)
			for _, j := range f.Judge(t.Context(), f.Collect(t.Context(), providers.Query{}).Items, looking()) {
				assert.True(t, j.Verdict.Looked)
				require.NoError(t, j.Failed)
			}
			assert.Len(t, b.calls, calls, kind)
			assert.Len(t, b.fake.Calls(fake.OpLogs), 30)
		})
	}
}

// TestABatchDecidesNothingWhereSilenceMayBeProved: a source that captures all output may show that
// a busy sandbox is stuck.
func TestABatchDecidesNothingWhereSilenceMayBeProved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := bulkOf(1)
		b.use(fake.New(fake.Options{Name: "prod"}))
		made := time.Now().Add(-time.Hour)
		b.fake.Add(fake.Seed{Sandbox: sandbox.Sandbox{ID: "quiet", CreatedAt: made, StartedAt: made}, Usage: func(now time.Time) sandbox.Usage {
			return sandbox.Usage{At: now, CPUSeconds: new(now.Sub(made).Seconds())}
		}})
		f := of(b)
		got := f.Judge(t.Context(), f.Collect(t.Context(), providers.Query{}).Items, looking())
		assert.Equal(t, sandbox.True, got[0].Verdict.Stuck, got[0].Verdict.Reason)
	})
}

// TestABusyOneWithNewOutputIsAskedForItsLogAlone: a processor at its limit excuses silence for a while, and output within
// that time decides. What may be a loop, or lies in the future, is looked at as a whole.
func TestABusyOneWithNewOutputIsAskedForItsLogAlone(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		ago      time.Duration
		lines    int
		captured bool
		decided  bool
		stuck    sandbox.Verdict
	}{
		"new":                  {ago: 10 * time.Second, lines: 1, decided: true, stuck: sandbox.False},
		"new, of all output":   {ago: 4 * time.Minute, lines: 3, captured: true, decided: true, stuck: sandbox.False},
		"old":                  {ago: 6 * time.Minute, lines: 1, stuck: sandbox.False},
		"old, of all output":   {ago: 6 * time.Minute, lines: 1, captured: true, stuck: sandbox.True},
		"one line, repeated":   {ago: time.Second, lines: 60, captured: true, stuck: sandbox.True},
		"of the future":        {ago: -time.Hour, lines: 1, stuck: sandbox.False},
		"none":                 {stuck: sandbox.False},
		"none, of all output ": {captured: true, stuck: sandbox.True},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := bulkOf(0)
				b.cpu = func(string) *float64 { return new(100.0) }
				b.use(fake.New(fake.Options{Name: "prod", PartialLogs: !tc.captured}))
				made := time.Now().Add(-time.Hour)
				seed := fake.Seed{Sandbox: sandbox.Sandbox{ID: "busy", CreatedAt: made, StartedAt: made, ActivityBasis: sandbox.BasisRequests}, Usage: func(now time.Time) sandbox.Usage {
					return sandbox.Usage{At: now, CPUSeconds: new(now.Sub(made).Seconds())}
				}}
				for i := range tc.lines {
					seed.Logs = append(seed.Logs, sandbox.LogLine{At: time.Now().Add(-tc.ago - time.Duration(tc.lines-1-i)*time.Second), Text: "compiling"})
				}
				b.fake.Add(seed)
				f := of(b)
				got := f.Judge(t.Context(), f.Collect(t.Context(), providers.Query{}).Items, looking())
				assert.Equal(t, tc.stuck, got[0].Verdict.Stuck, got[0].Verdict.Reason)
				assert.Equal(t, tc.decided, len(b.fake.Calls(fake.OpUsage)) == 0, "it is asked for more")
				assert.NotEmpty(t, b.fake.Calls(fake.OpLogs))
				if tc.decided {
					assert.Len(t, b.fake.Calls(fake.OpLogs), 1)
				}
			})
		})
	}
}

// TestSamplesOfManyComeInBatches, and one by one where the answer lacks one.
func TestSamplesOfManyComeInBatches(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := bulkOf(25)
		b.cpu = func(id string) *float64 {
			if id == "box-020" {
				return nil
			}
			return new(20.0)
		}
		var refs []sandbox.Ref
		for i := range 25 {
			refs = append(refs, sandbox.Ref{Provider: "prod", ID: fmt.Sprintf("box-%03d", i)})
		}
		for round := range of(b).Samples(t.Context(), refs, 1, 0) {
			for i, s := range round.Samples {
				require.NoError(t, s.Err)
				assert.Equal(t, refs[i], s.Ref)
				assert.Equal(t, i != 20, s.Usage.Source == "bulk")
			}
		}
		assert.Len(t, b.calls, 3)
		assert.Len(t, b.fake.Calls(fake.OpUsage), 1)
	})
}

// TestForEachBoundsTheWorkOfAProvider: ten thousand goroutines cost more than what they wait for,
// and a silent provider delays no other.
func TestForEachBoundsTheWorkOfAProvider(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var items []sandbox.Sandbox
		for i := range 10_000 {
			items = append(items, sandbox.Sandbox{Provider: []string{"quick", "silent"}[i%2], ID: strconv.Itoa(i)})
		}
		release := make(chan struct{})
		var quick, now, most atomic.Int64
		finished := make(chan struct{})
		go func() {
			defer close(finished)
			of(stocked("quick"), stocked("silent")).ForEach(items, func(i int) {
				if items[i].Provider == "quick" {
					quick.Add(1)
					return
				}
				most.Store(max(most.Load(), now.Add(1)))
				<-release
				now.Add(-1)
			})
		}()
		synctest.Wait()
		assert.EqualValues(t, 5_000, quick.Load())
		assert.EqualValues(t, 256, most.Load())
		close(release)
		<-finished
	})
}

// TestASilentProviderDelaysNoLookAtTheOthers, neither with its batches nor with its looks.
func TestASilentProviderDelaysNoLookAtTheOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		quick, silent := bulkOf(30), &slowReader{bulkOf(0)}
		silent.use(fake.New(fake.Options{Name: "silent"}))
		made := time.Now().Add(-time.Hour)
		silent.fake.Add(fake.Seed{Sandbox: sandbox.Sandbox{ID: "box", CreatedAt: made, StartedAt: made}})
		quick.cpu = func(string) *float64 { return new(0.0) }
		f := of(quick, silent)
		items := f.Collect(t.Context(), providers.Query{}).Items
		var looked atomic.Int64
		how := looking()
		how.Seen = func(p fleet.LookProgress) { looked.Store(int64(p.Done)) }
		ctx, stop := context.WithCancel(t.Context())
		finished := make(chan struct{})
		go func() {
			defer close(finished)
			f.Judge(ctx, items, how)
		}()
		advance(t, 5*time.Second)
		assert.EqualValues(t, 30, looked.Load())
		stop()
		<-finished
	})
}

// slowReader never answers a batch.
type slowReader struct{ *bulkReader }

func (s *slowReader) UsageOfMany(ctx context.Context, _ []string) (map[string]sandbox.Usage, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// someDead are sandboxes of which every third answers after a second that nothing in it works; the others
// answer after 20 ms.
type someDead struct {
	*fake.Provider

	api, most atomic.Int64 // calls in flight that hold a slot
}

func (p *someDead) Usage(ctx context.Context, id string) (sandbox.Usage, error) {
	if n, _ := strconv.Atoi(id[len(id)-3:]); n%3 == 0 {
		if err := providers.SleepWithoutSlot(ctx, time.Second); err != nil {
			return sandbox.Usage{}, err
		}
		dead := fault.New(fault.KindUnavailable, "the port is not open").Inside()
		dead.Definite = true
		return sandbox.Usage{}, dead
	}
	p.most.Store(max(p.most.Load(), p.api.Add(1)))
	defer p.api.Add(-1)
	time.Sleep(20 * time.Millisecond)
	return p.Provider.Usage(ctx, id)
}

// TestTheDeadHoldUpNoOtherLook: neither the slots nor the places of looks under way are theirs while they wait.
func TestTheDeadHoldUpNoOtherLook(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &someDead{Provider: fake.New(fake.Options{Name: "prod"})}
		made := time.Now().Add(-time.Hour)
		for i := range 450 {
			id := fmt.Sprintf("box-%03d", i)
			p.Add(fake.Seed{Sandbox: sandbox.Sandbox{ID: id, CreatedAt: made, StartedAt: made}, Dead: i%3 == 0})
		}
		f := of(p)
		items := f.Collect(t.Context(), providers.Query{}).Items
		began := time.Now()
		var alive atomic.Int64 // how long the others took
		f.Look(t.Context(), items, fleet.Looking{Thresholds: looking().Thresholds}, func(i int, o fleet.Observation) {
			if n, _ := strconv.Atoi(items[i].ID[4:]); n%3 != 0 {
				alive.Store(max(alive.Load(), int64(time.Since(began))))
				return
			}
			assert.Equal(t, sandbox.False, o.Health.Got.Verdict, items[i].ID)
		})
		assert.LessOrEqual(t, time.Duration(alive.Load()), 3*time.Second, "300 of two calls each, 16 at once, and pauses between")
		assert.LessOrEqual(t, time.Since(began), 4*time.Second)
		assert.LessOrEqual(t, p.most.Load(), int64(fleet.DefaultSlots))
	})
}

// TestALateAnswerProvesNoSilence: the log is read before or beside what answers late, and shows nothing of that time.
func TestALateAnswerProvesNoSilence(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		printed time.Duration // before the look began
		lines   int
		cpu     float64
		slow    fake.Op
		took    time.Duration
		stuck   sandbox.Verdict
	}{
		"idle, in time":                {printed: 70 * time.Second, lines: 1, cpu: 0.2, stuck: sandbox.True},
		"idle, its exit is late":       {printed: 50 * time.Second, lines: 1, cpu: 0.2, slow: fake.OpExit, took: 20 * time.Second, stuck: sandbox.False},
		"busy, its usage is late":      {printed: 301 * time.Second, lines: 1, cpu: 100, slow: fake.OpUsage, took: 20 * time.Second, stuck: sandbox.True},
		"busy, and printed by 5m then": {printed: 290 * time.Second, lines: 1, cpu: 100, slow: fake.OpExit, took: 20 * time.Second, stuck: sandbox.False},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := fake.New(fake.Options{Name: "prod"})
				made := time.Now().Add(-time.Hour)
				seed := fake.Seed{
					Sandbox: sandbox.Sandbox{ID: "one", CreatedAt: made, StartedAt: made, Labels: map[string]string{sandbox.LabelOwner: "ann"}, ActivityBasis: sandbox.BasisRequests},
					Usage: func(now time.Time) sandbox.Usage {
						return sandbox.Usage{At: now, CPUPercent: &tc.cpu, CPUSeconds: new(now.Sub(made).Seconds() * tc.cpu / 100)}
					},
				}
				for range tc.lines {
					seed.Logs = append(seed.Logs, sandbox.LogLine{At: time.Now().Add(-tc.printed), Text: "step"})
				}
				p.Add(seed)
				if tc.slow != "" {
					p.Break(fake.Fault{Op: tc.slow, Delay: tc.took})
				}
				f := of(p)
				got := f.Judge(t.Context(), f.Collect(t.Context(), providers.Query{}).Items, looking())
				assert.Equal(t, tc.stuck, got[0].Verdict.Stuck, got[0].Verdict.Reason)
			})
		})
	}
}
