package reconcile_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"sbx/internal/reconcile"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/fake"
)

// TestAccidents replays incidents of other projects, each named by its report. After two
// observations and a fix, these are the sandboxes whose end was requested and the records
// that were marked. Others are cells of the matrix: orphans that only the provider knows
// (kortix-ai/suna#3571, proliferate-ai/proliferate#1280), are not ours (kortix-ai/suna#3571,
// NousResearch/hermes-agent#29123), young (proliferate-ai/proliferate#1280), at work
// (radixark/miles#1711), protected (paradigmxyz/centaur#1406), ageless (benchflow-ai/benchflow#663)
// or denied by their id (daytonaio/daytona#5138), and records that say ended of what is on its way
// down (AgentWorkforce/relay#1711), over (Serverless-Devs/agentrun-sdk-python#83) or begun after
// (omnigent-ai/omnigent#6127).
func TestAccidents(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		stage  func(*scene)
		ended  []string
		marked []string
	}{
		"NousResearch/hermes-agent#94895: a silent record is no dead owner": {
			stage: func(s *scene) {
				r := recorded("x", is)
				r.UpdatedAt = noon.Add(-24 * time.Hour)
				s.on(r).box("x", 25*time.Hour)
			},
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
		"opensandbox-group/OpenSandbox#1200: an expiry in the past is no end": {
			stage: func(s *scene) {
				s.on(recorded("x", is)).box("x", old, func(b *sandbox.Sandbox) { b.ExpiresAt = noon.Add(-time.Hour) })
			},
		},
		"Lyellr88/marm-memory#144: age is no proof of idleness": {
			stage: func(s *scene) { s.on(recorded("x", is)).box("x", 240*time.Hour) },
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
