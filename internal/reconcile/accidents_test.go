package reconcile_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/reconcile"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/fake"
)

// TestAccidents replays incidents of other projects, each named by its report. After two
// observations and a fix, these are the sandboxes whose end was requested and the records
// that were marked.
func TestAccidents(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		stage  func(*scene)
		ended  []string
		marked []string
	}{
		"kortix-ai/suna#3571: a reaper that goes by the records alone cannot see orphans": {
			stage: func(s *scene) { s.box("orphan", 25*time.Hour) },
			ended: []string{"orphan"},
		},
		"kortix-ai/suna#3571: those without our label are never touched": {
			stage: func(s *scene) { s.box("orphan", 25*time.Hour, label("team", "others")) },
		},
		"NousResearch/hermes-agent#29123: a live sibling's boxes are not ours to end": {
			stage: func(s *scene) { s.box("hermes-1", old, label("team", "others")) },
		},
		"NousResearch/hermes-agent#94895: a silent record is no dead owner": {
			stage: func(s *scene) {
				r := recorded("x", is)
				r.UpdatedAt = noon.Add(-24 * time.Hour)
				s.on(r).box("x", 25*time.Hour)
			},
		},
		"daytonaio/daytona#5138: a list shows again what is gone; the read by id decides": {
			stage: func(s *scene) {
				s.box("flaps", old)
				s.prod.Break(fake.Fault{Op: fake.OpGet, ID: "flaps", Err: planted(fault.KindNotFound)})
			},
		},
		"AgentWorkforce/relay#1711: what is on its way to the end is no leak": {
			stage: func(s *scene) { s.on(recorded("x", isNot)).box("x", old, state(sandbox.StateTerminating)) },
		},
		"Serverless-Devs/agentrun-sdk-python#83: listed as terminated for ever": {
			stage: func(s *scene) { s.on(recorded("x", isNot)).box("x", old, state(sandbox.StateTerminated)) },
		},
		"NVIDIA/OpenShell#3317: a replacement of the same name is another": {
			stage: func(s *scene) { s.on(before("worker", noon.Add(-3*time.Hour))).box("b", old, worker) },
		},
		"TencentCloud/CubeSandbox#931: paused ones are not in the list, and not deleted": {
			stage: func(s *scene) {
				s.on(recorded("paused", is))
				s.box("paused", old, state(sandbox.StatePaused))
				s.prod.Break(fake.Fault{Op: fake.OpList, Page: 2, Skip: true}) // the page that contains it
			},
		},
		"proliferate-ai/proliferate#1280: created, and the record was lost": {
			stage: func(s *scene) { s.box("nameless", old) },
			ended: []string{"nameless"},
		},
		"proliferate-ai/proliferate#1280: created, and the record is on its way": {
			stage: func(s *scene) { s.box("young", time.Minute) },
		},
		"opensandbox-group/OpenSandbox#1200: an expiry in the past is no end": {
			stage: func(s *scene) {
				s.on(recorded("x", is)).box("x", old, func(b *sandbox.Sandbox) { b.ExpiresAt = noon.Add(-time.Hour) })
			},
		},
		"radixark/miles#1711: a healthy episode that shows life is not ended for want of a record": {
			stage: func(s *scene) { s.box("episode", 25*time.Hour, func(b *sandbox.Sandbox) { b.Activity = is }) },
		},
		"omnigent-ai/omnigent#6127: an id that is used again is another generation": {
			stage: func(s *scene) { s.on(before("job-7", noon.Add(-3*time.Hour))).box("job-7", old) },
		},
		"paradigmxyz/centaur#1406: another component's box looks unreferenced": {
			stage: func(s *scene) { s.box("workflow", old, label(sandbox.LabelKeep, "true")) },
		},
		"Lyellr88/marm-memory#144: age is no proof of idleness": {
			stage: func(s *scene) { s.on(recorded("x", is)).box("x", 240*time.Hour) },
		},
		"benchflow-ai/benchflow#663: a missing timestamp keeps": {
			stage: func(s *scene) { s.box("x", old, ageless) },
		},
		"the runbook's cause 4: recorded as running, and not there": {
			stage:  func(s *scene) { s.on(recorded("ghost", is)) },
			marked: []string{"ghost"},
		},
		"the runbook's script: a box made between two lists is no orphan": {
			stage: func(s *scene) {
				s.box("between", old)
				records := s.records
				s.later = func(reading int) []reconcile.Record {
					if reading%2 == 1 {
						return records
					}
					return append(slices.Clip(records), recorded("between", is))
				}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene()
			s.prod = fake.New(fake.Options{Name: "prod", Now: s.clock, PageSize: 1})
			s.on(recorded("neighbour", is)).box("neighbour", old)
			c.stage(s)
			s.fix(t, s.proved(t))
			var ended, marked []string
			for _, call := range s.prod.Calls(fake.OpTerminate) {
				ended = append(ended, call.ID)
			}
			for _, ref := range s.marked {
				marked = append(marked, ref.ID)
			}
			assert.Equal(t, c.ended, ended)
			assert.Equal(t, c.marked, marked)
		})
	}
}

// TestTheRunbooksScriptCannotHappen: with an empty or a failed list of records every
// box is an orphan to the script of the runbook.
func TestTheRunbooksScriptCannotHappen(t *testing.T) {
	t.Parallel()
	for name, failing := range map[string]func(int) error{
		"empty":  nil,
		"failed": func(int) error { return planted(fault.KindUnavailable) },
	} {
		s := newScene()
		s.failing = failing
		for i := range 30 {
			s.box(fmt.Sprintf("box%d", i), old)
		}
		plan := s.proved(t)
		require.Len(t, plan.Errors, 1, name)
		assert.Empty(t, s.fix(t, plan), name)
		assert.Equal(t, 0, s.asked(), name)
	}
}

// TestACapIsNeverATruncation: hyperlocalise/hyperlocalise#1488 ends the 100 oldest
// of whatever there are.
func TestACapIsNeverATruncation(t *testing.T) {
	t.Parallel()
	s := crowd(200, 21, 0)
	_, err := s.engine(t).Fix(t.Context(), s.proved(t), s.how())
	assert.Equal(t, fault.KindRefused, fault.KindOf(err))
	assert.Equal(t, 0, s.asked())
}

// TestAReportChangesNothing: the reaper of reddb-io/red-skills#3641 did so in its
// report mode.
func TestAReportChangesNothing(t *testing.T) {
	t.Parallel()
	s, plan := troubled(t)
	calls := len(s.prod.Calls())
	plan.Guards(s.limits)
	plan.Counts()
	assert.Len(t, s.prod.Calls(), calls)
	assert.Equal(t, 0, s.asked())
	assert.Empty(t, s.marked)
	assert.Empty(t, s.journal.lines)
}
