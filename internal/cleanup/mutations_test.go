package cleanup_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"sbx/internal/cleanup"
	"sbx/internal/reconcile"
	"sbx/internal/runs"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/planted"
	"sbx/internal/testkit/schedule"
	"sbx/internal/triage"
)

// plantedMistake is one mistake, within how many seeds it shows, and a word of the rule that it
// breaks.
type plantedMistake struct {
	mut    mutation
	within uint64
	says   string
}

func mutations() map[string]plantedMistake {
	rule := func(change func(*cleanup.Rule)) mutation { return mutation{rule: change} }
	world := func(change func(*cleanup.Environment)) mutation { return mutation{world: change} }
	compare := func(change func(*reconcile.Rules)) mutation { return mutation{compare: change} }
	return map[string]plantedMistake{
		"one look proves an orphan": {mutation{oneLookProves: true}, 500, "seen once only"},
		"an orphan may be young":    {compare(func(r *reconcile.Rules) { r.CreateGrace = time.Nanosecond }), 1000, "may still be written"},
		"orphans of strangers are ours": {compare(func(r *reconcile.Rules) {
			r.Owned = func(string, map[string]string) bool { return true }
		}), 500, "a suspect: it is not ours"},
		"a failed listing just ends":             {mutation{swallowsListErrors: true}, 500, "not listed whole"},
		"the read before the end is the list's":  {mutation{readsStale: true}, 3000, "asks"},
		"a 2xx is an end":                        {mutation{seesEndsAtOnce: true}, 500, "says that"},
		"a request is repeated":                  {mutation{asksTwice: true}, 500, "twice"},
		"output is not read":                     {mutation{hearsNothing: true}, 500, "its output shows life"},
		"a partial log proves silence":           {mutation{trustsPartialLogs: true}, 500, "nothing tells whether it works"},
		"the journal is not synced":              {mutation{neverSyncs: true}, 500, "the disk holds 0 intents"},
		"a torn line is kept":                    {mutation{keepsTornLines: true}, 1000, "was changed or damaged"},
		"the lock always grants":                 {mutation{lockAlwaysGrants: true}, 1000, "acts"},
		"guards are not asked":                   {mutation{ignoresGuards: true}, 500, "more than"},
		"a dry run acts":                         {mutation{dryRunActs: true}, 500, "dry run"},
		"the verdict is always success":          {mutation{alwaysSucceeds: true}, 500, "exit 0"},
		"a refused run is gone on with":          {mutation{resumesRefused: true}, 1000, "refused"},
		"a resume forgets what is done":          {mutation{resumesAll: true}, 1000, "which the disk said"},
		"intents are not written":                {mutation{skips: runs.EntryIntent}, 500, "intents"},
		"results are not written":                {mutation{skips: runs.EntryResult}, 500, "the disk says"},
		"an outcome is lost":                     {mutation{losesEvery: 2}, 500, "comes out 0 times"},
		"activity is ignored":                    {rule(func(r *cleanup.Rule) { r.IgnoreActivity = true }), 500, "shows life"},
		"a shorter silence is enough":            {rule(func(r *cleanup.Rule) { r.IdleFor = time.Second }), 500, "shows life"},
		"strangers are ours":                     {rule(func(r *cleanup.Rule) { r.Unowned = true }), 500, "not ours"},
		"paused ones go":                         {rule(func(r *cleanup.Rule) { r.IncludePaused, r.Delete = true, true }), 500, "paused"},
		"stop means delete":                      {rule(func(r *cleanup.Rule) { r.Delete = true }), 500, "deletes"},
		"half the age is enough":                 {rule(func(r *cleanup.Rule) { r.Selector.OlderThan /= 2 }), 500, "is not over"},
		"states do not matter":                   {rule(func(r *cleanup.Rule) { r.Selector.States = nil }), 500, "not in the state"},
		"labels do not matter":                   {rule(func(r *cleanup.Rule) { r.Selector.Labels = nil }), 500, "the label that was asked for"},
		"nothing is protected":                   {world(func(w *cleanup.Environment) { w.Protected = func(sandbox.Sandbox) string { return "" } }), 500, "protects it"},
		"every profile owns everything":          {world(ownAll), 500, "not ours"},
		"no profile is production":               {world(noProduction), 500, "production"},
		"agent types have no limits":             {world(sameLimits), 500, "agent type"},
		"unknown activity counts as none":        {world(ageOnly), 500, "nothing tells"},
		"the share of the fleet does not matter": {world(func(w *cleanup.Environment) { w.Limits.MaxFraction = 100 }), 2000, "%"},
		"the clock of the machine is an hour on": {world(hourAhead), 500, "asks"},
	}
}

func ownAll(w *cleanup.Environment) {
	for i := range w.Profiles {
		w.Profiles[i].Owns = nil
	}
}

func noProduction(w *cleanup.Environment) { w.Limits.Production = nil }

func sameLimits(w *cleanup.Environment) {
	was := w.Thresholds
	w.Thresholds = func(s sandbox.Sandbox) triage.Thresholds {
		t := was(s)
		t.StuckAge = triage.DefaultThresholds().StuckAge
		return t
	}
}

func ageOnly(w *cleanup.Environment) {
	was := w.Thresholds
	w.Thresholds = func(s sandbox.Sandbox) triage.Thresholds {
		t := was(s)
		t.AgeOnly = true
		return t
	}
}

func hourAhead(w *cleanup.Environment) {
	was := w.Now
	w.Now = func() time.Time { return was().Add(time.Hour) }
}

// TestPlantedMistakesAreCaught shows that the simulation can fail: each mistake breaks the
// expected rule within some seeds. It runs where SBX_MUTATIONS is set.
func TestPlantedMistakesAreCaught(t *testing.T) {
	t.Parallel()
	planted.Each(t, mutations(), func(t *testing.T, m plantedMistake) {
		t.Helper()
		t.Parallel()
		other := ""
		for seed := uint64(1); seed <= m.within; seed++ {
			for _, wrong := range schedule.Play(t, seed, m.mut.play).Broken {
				if strings.Contains(wrong, m.says) {
					t.Logf("caught by seed %d: %s", seed, wrong)
					return
				}
				other = wrong
			}
		}
		assert.Fail(t, "nobody notices", "within %d seeds; last seen: %q", m.within, other)
	})
}
