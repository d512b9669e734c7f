package safety_test

import (
	"context"
	"errors"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"sbx/internal/fleet"
	"sbx/internal/runs"
	"sbx/internal/safety"
	"sbx/internal/sandbox"
)

// requested is a fleet that requests the end of a target, where Before lets it.
type requested struct{ n int }

func (r *requested) Terminate(ctx context.Context, targets []sandbox.Sandbox, o fleet.EndOptions) iter.Seq[sandbox.Ending] {
	return func(yield func(sandbox.Ending) bool) {
		for _, s := range targets {
			e := sandbox.Ending{Ref: s.Ref(), Outcome: sandbox.OutcomeVerified}
			if err := o.Before(ctx, s, false); err != nil {
				e.Outcome, e.Reason = sandbox.OutcomeNotAttempted, err.Error()
			} else {
				r.n++
				o.After(s.Ref(), sandbox.EndRequest{})
			}
			if !yield(e) {
				return
			}
		}
	}
}

// fullDisk is a journal that takes no line.
type fullDisk struct{}

func (fullDisk) Append(string, any) error { return errors.New("no space left on device") }

// hungDisk is a journal whose disk does not answer.
type hungDisk chan struct{}

func (h hungDisk) Append(string, any) error {
	<-h
	return nil
}

// TestANamedEndWaitsForNoDisk that hangs, and says once that it is not in the journal.
func TestANamedEndWaitsForNoDisk(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hung, warned, f := make(hungDisk), 0, &requested{}
		record := &runs.Writer{Journal: hung, Policy: runs.BestEffort, Warn: func(string) { warned++ }}
		began := time.Now()
		for e := range safety.End(t.Context(), f, []sandbox.Sandbox{{Provider: "prod", ID: "a"}, {Provider: "prod", ID: "b"}}, safety.Options{Verb: safety.VerbTerminate, Protected: nobody, Record: record}) {
			assert.Equal(t, sandbox.OutcomeVerified, e.Outcome)
		}
		assert.Equal(t, 2, f.n)
		assert.Equal(t, 1, warned)
		assert.Equal(t, 2*time.Second, time.Since(began))
		close(hung)
	})
}

// TestAJournalThatCannotBeWritten: a run by a rule requests nothing, an end that was named does not depend on the
// journal and says once that it is not in it.
func TestAJournalThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	targets := []sandbox.Sandbox{{Provider: "prod", ID: "a"}, {Provider: "prod", ID: "b"}}
	for name, tc := range map[string]struct {
		policy   runs.Policy
		journal  runs.Journal
		requests int
		outcome  sandbox.Outcome
		warnings int
	}{
		"must, the disk is full":    {runs.JournalRequired, fullDisk{}, 0, sandbox.OutcomeNotAttempted, 0},
		"must, there is no journal": {runs.JournalRequired, nil, 0, sandbox.OutcomeNotAttempted, 0},
		"best, the disk is full":    {runs.BestEffort, fullDisk{}, 2, sandbox.OutcomeVerified, 1},
		"best, there is no journal": {runs.BestEffort, nil, 2, sandbox.OutcomeVerified, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var warned []string
			f := &requested{}
			record := &runs.Writer{Journal: tc.journal, Policy: tc.policy, Warn: func(s string) { warned = append(warned, s) }}
			n := 0
			for e := range safety.End(t.Context(), f, targets, safety.Options{Verb: safety.VerbCleanup, Protected: nobody, Record: record}) {
				n++
				assert.Equal(t, tc.outcome, e.Outcome, e.Reason)
			}
			assert.Equal(t, len(targets), n)
			assert.Equal(t, tc.requests, f.n)
			assert.Len(t, warned, tc.warnings)
		})
	}
}
