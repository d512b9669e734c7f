package engine_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/providers"
	"sbx/internal/runbook/engine"
	"sbx/internal/testkit/bubble"
	"sbx/internal/testkit/fake"
)

const endsAll = `  steps:
    - id: all
      collect: [diagnose]
      title: Diagnose
      eta: 1m
  causes:
    - theory: infinite_loop
      steps:
        - id: end
          title: End them
          act:
            action: terminate
            targets: cause
          gate: yes
          expect: thresholds.active > 0
          within: 10s
          eta: 1m
  procedures:
    - id: stuck
      title: End what is stuck
      steps:
        - id: end-stuck
          title: End what is stuck
          act:
            action: terminate
            targets: stuck
          gate: yes
          expect: thresholds.active > 0
          within: 10s
          eta: 1m
        - id: clean
          title: Clean up
          act:
            action: cleanup
            stuck: true
          gate: yes
          expect: thresholds.active > 0
          within: 10s
          eta: 1m
        - id: repair
          title: Repair
          act:
            action: reconcile
          gate: yes
          expect: thresholds.active > 0
          within: 10s
          eta: 1m
        - id: urgent
          title: All at once
          act:
            action: cleanup
            emergency: true
          gate: name
          expect: thresholds.active > 0
          within: 10s
          eta: 1m
` + checks

// TestARunAboutOneSandbox ends no other: not those with the same cause, not those that are stuck, and it
// leaves out what is about all.
func TestARunAboutOneSandbox(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		procedure, word string
		ended           map[string]int
		reasons         map[string]string // of steps that are skipped
	}{
		"its cause":           {word: "prod/loop0001", ended: map[string]int{"loop0001": 1}},
		"a part of its id":    {word: "loop0001", ended: map[string]int{"loop0001": 1}},
		"another has it":      {word: "prod/calm0001", ended: map[string]int{}, reasons: map[string]string{"end": "there is nothing to terminate: --ref names prod/calm0001, which is not among those with the cause busy loop"}},
		"one that is stuck":   {procedure: "stuck", word: "prod/loop0001", ended: map[string]int{"loop0001": 1}, reasons: map[string]string{"clean": "cleanup is about all sandboxes, and --ref names prod/loop0001 alone", "repair": "reconcile is about all", "urgent": "an emergency cleanup is about all"}},
		"one that is not":     {procedure: "stuck", word: "prod/calm0001", ended: map[string]int{}, reasons: map[string]string{"end-stuck": "--ref names prod/calm0001, which is not known to be stuck"}},
		"one that is no more": {procedure: "stuck", word: "prod/none0001", ended: map[string]int{}, reasons: map[string]string{"end-stuck": "--ref names prod/none0001, which is not there"}},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			full := []providers.Quota{{Name: "sandboxes", Used: new(9.0), Limit: new(10.0)}}
			p := prod(fake.Options{Quotas: full}, looping("loop0001"), looping("loop0002"), looping("loop0003"), calm("calm0001"))
			req := engine.Request{Book: written(t, endsAll), Procedure: tc.procedure, Word: tc.word, Yes: true, MaxDelete: 5, Production: []string{"prod"}}
			run := newSite(t, "", p).run(t, req, &person{})
			assert.Equal(t, tc.ended, ends(p))
			assert.Empty(t, p.Calls(fake.OpCleanup))
			for id, reason := range tc.reasons {
				assert.Equal(t, "skipped ", stateOfStep(t, run, id), run.Step(id).Reason)
				assert.Contains(t, run.Step(id).Reason, reason)
			}
			if id := map[string]string{"": "end", "stuck": "end-stuck"}[tc.procedure]; len(tc.ended) > 0 {
				require.Equal(t, "done true", stateOfStep(t, run, id), run.Step(id).Reason)
				assert.Equal(t, "prod/loop0001", run.Step(id).Act.Targets[0].Ref)
			}
		})
	}
}

// TestAnEffectThatIsNotSeen says what was seen instead.
func TestAnEffectThatIsNotSeen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := prod(fake.Options{}, looping("loop0001"), calm("calm0001"))
		book := written(t, strings.ReplaceAll(endsAll, "expect: thresholds.active > 0", "expect: stats.active == 0"))
		run := newSite(t, "", p).run(t, engine.Request{Book: book, Word: "prod/loop0001", Yes: true, MaxDelete: 5}, &person{})
		assert.Equal(t, "failed false", stateOfStep(t, run, "end"))
		assert.Contains(t, run.Step("end").Reason, "not seen within 10s; seen last: 1 active, target 0")
	})
}
