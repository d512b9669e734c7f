package cron_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"sbx/internal/cron"
	"sbx/internal/sandbox"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// run is one that began that long ago and took ten seconds.
func run(l cron.Layer, ago time.Duration, code int) cron.Run {
	r := cron.Run{Layer: l, StartedAt: noon.Add(-ago - 10*time.Second), EndedAt: noon.Add(-ago), ExitCode: code}
	if code == 0 {
		r.Succeeded = []string{"prod", "eu"}
	}
	return r
}

// looked is a run of reconcile that only looked, and found something.
func looked(ago time.Duration) cron.Run {
	r := run(cron.Reconcile, ago, 10)
	r.Succeeded = []string{"prod", "eu"}
	return r
}

// only is a run that succeeded in one profile and failed in another.
func only(profile string, r cron.Run) cron.Run {
	r.ExitCode, r.Succeeded = 3, []string{profile}
	return r
}

// short is a run that proves nothing.
func short(r cron.Run) cron.Run {
	r.CoverageGap = "it covers only a part of its layer: --label"
	return r
}

func expect(layers ...cron.Layer) []cron.Expected {
	var list []cron.Expected
	for _, l := range layers {
		list = append(list, cron.Expect(l, []string{"prod", "eu"}))
	}
	return list
}

func TestJudge(t *testing.T) {
	t.Parallel()
	hanging := cron.Run{Layer: cron.Stuck, StartedAt: noon.Add(-time.Hour)}
	for name, tc := range map[string]struct {
		layer   cron.Layer
		runs    []cron.Run
		verdict sandbox.Verdict
		says    string
	}{
		"nothing recorded":        {cron.Stuck, nil, sandbox.Unknown, "no run is recorded"},
		"of another layer":        {cron.Stuck, []cron.Run{run(cron.Age, time.Minute, 0)}, sandbox.Unknown, "no run is recorded"},
		"just now":                {cron.Stuck, []cron.Run{run(cron.Stuck, 30*time.Second, 0)}, sandbox.True, "it last succeeded 30s ago"},
		"exactly two periods":     {cron.Stuck, []cron.Run{run(cron.Stuck, 10*time.Minute, 0)}, sandbox.True, "it last succeeded 10m ago"},
		"a second more":           {cron.Stuck, []cron.Run{run(cron.Stuck, 10*time.Minute+time.Second, 0)}, sandbox.False, "overdue: it last succeeded 10m1s ago, and should succeed every 5m"},
		"its own period":          {cron.Age, []cron.Run{run(cron.Age, 29*time.Minute, 0)}, sandbox.True, "it last succeeded 29m ago"},
		"failing since":           {cron.Stuck, []cron.Run{run(cron.Stuck, time.Minute, 11), run(cron.Stuck, time.Hour, 0)}, sandbox.False, "overdue: it last succeeded 1h ago, and should succeed every 5m; it last ran 1m10s ago and ended with exit 11"},
		"failed once":             {cron.Stuck, []cron.Run{run(cron.Stuck, 6*time.Minute, 0), run(cron.Stuck, time.Minute, 3)}, sandbox.True, "it last succeeded 6m ago"},
		"never succeeded":         {cron.Stuck, []cron.Run{run(cron.Stuck, time.Minute, 4)}, sandbox.False, "it has never succeeded; it last ran 1m10s ago and ended with exit 4"},
		"has not ended":           {cron.Stuck, []cron.Run{hanging}, sandbox.False, "it has never succeeded; it last ran 1h ago and has not ended"},
		"reconcile, only looking": {cron.Reconcile, []cron.Run{looked(time.Hour)}, sandbox.True, "it last succeeded 1h ago"},
		"reconcile, cut short":    {cron.Reconcile, []cron.Run{run(cron.Reconcile, time.Hour, 3)}, sandbox.False, "it has never succeeded; it last ran 1h ago and ended with exit 3"},
		"only reconcile looks":    {cron.Age, []cron.Run{run(cron.Age, time.Minute, 10)}, sandbox.False, "it has never succeeded; it last ran 1m10s ago and ended with exit 10"},
		"the clock was wrong":     {cron.Stuck, []cron.Run{run(cron.Stuck, -time.Hour, 0)}, sandbox.Unknown, "the last success is recorded in the future: check the clock of this machine"},
		"one profile fails":       {cron.Stuck, []cron.Run{only("eu", run(cron.Stuck, time.Minute, 0))}, sandbox.False, "it has never succeeded at prod; it last ran 1m10s ago and ended with exit 3"},
		"one profile is overdue":  {cron.Stuck, []cron.Run{only("eu", run(cron.Stuck, time.Minute, 0)), run(cron.Stuck, time.Hour, 0)}, sandbox.False, "overdue: it last succeeded at prod 1h ago, and should succeed every 5m; it last ran 1m10s ago and ended with exit 3"},
		"a run for each profile":  {cron.Stuck, []cron.Run{only("eu", run(cron.Stuck, time.Minute, 0)), only("prod", run(cron.Stuck, 2*time.Minute, 0))}, sandbox.True, "it last succeeded 2m ago"},
		"a narrower rule":         {cron.Stuck, []cron.Run{short(run(cron.Stuck, time.Minute, 0))}, sandbox.False, "it has never succeeded; it last ran 1m10s ago, which does not count: it covers only a part of its layer: --label"},
		"a clock a little off":    {cron.Stuck, []cron.Run{run(cron.Stuck, -20*time.Second, 0)}, sandbox.True, "it last succeeded 0s ago"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for range 2 { // the order of the records means nothing
				got := cron.Judge(expect(tc.layer), tc.runs, noon)
				assert.Equal(t, tc.verdict, got[0].Verdict)
				assert.Equal(t, tc.says, got[0].Message)
				assert.Equal(t, cron.Every(tc.layer), got[0].Every)
				for i, j := 0, len(tc.runs)-1; i < j; i, j = i+1, j-1 {
					tc.runs[i], tc.runs[j] = tc.runs[j], tc.runs[i]
				}
			}
		})
	}
	all := cron.Judge(expect(cron.Layers()...), []cron.Run{run(cron.Usage, time.Minute, 0)}, noon)
	assert.Len(t, all, 4)
	assert.Equal(t, sandbox.True, all[2].Verdict)
	assert.Equal(t, noon.Add(-time.Minute), all[2].LastSuccess)
	assert.Equal(t, 0, *all[2].LastExit)
}

// TestWhatStaysUnowned turns a layer that runs well into one that is not in order.
func TestWhatStaysUnowned(t *testing.T) {
	t.Parallel()
	left := func(r cron.Run, n map[string]int) cron.Run { r.Unowned = n; return r }
	good, before := run(cron.Stuck, time.Minute, 0), run(cron.Stuck, 6*time.Minute, 0)
	for name, tc := range map[string]struct {
		runs    []cron.Run
		verdict sandbox.Verdict
		says    string
	}{
		"none":                       {[]cron.Run{left(good, map[string]int{"prod": 0, "eu": 0})}, sandbox.True, "it last succeeded 1m ago"},
		"some":                       {[]cron.Run{left(good, map[string]int{"prod": 20, "eu": 6})}, sandbox.False, "it skipped 26 stuck ones because nobody owns them (prod 20, eu 6); it last succeeded 1m ago"},
		"before, and not any more":   {[]cron.Run{left(good, map[string]int{"prod": 0}), left(before, map[string]int{"prod": 3})}, sandbox.True, "it last succeeded 1m ago"},
		"the newest did not see eu":  {[]cron.Run{left(good, map[string]int{"prod": 0}), left(before, map[string]int{"eu": 3})}, sandbox.False, "it skipped 3 stuck ones because nobody owns them (eu 3); it last succeeded 1m ago"},
		"a narrower run saw none":    {[]cron.Run{left(short(good), map[string]int{"prod": 0}), left(before, map[string]int{"prod": 3})}, sandbox.False, "it skipped 3 stuck ones because nobody owns them (prod 3); it last succeeded 6m ago"},
		"of a profile of no concern": {[]cron.Run{left(good, map[string]int{"other": 3})}, sandbox.True, "it last succeeded 1m ago"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := cron.Judge(expect(cron.Stuck), tc.runs, noon)[0]
			assert.Equal(t, tc.verdict, got.Verdict)
			assert.Equal(t, tc.says, got.Message)
		})
	}
}

// TestWhatCannotBeMeasuredIsNoGreen.
func TestWhatCannotBeMeasuredIsNoGreen(t *testing.T) {
	t.Parallel()
	e := cron.Expect(cron.Usage, []string{"prod"})
	e.Unmeasured = []string{"eu"}
	got := cron.Judge([]cron.Expected{e}, []cron.Run{run(cron.Usage, time.Minute, 0)}, noon)[0]
	assert.Equal(t, sandbox.Unknown, got.Verdict)
	assert.Equal(t, "it last succeeded 1m ago; quota use is unknown for eu", got.Message)
	r := run(cron.Usage, time.Minute, 0)
	r.Unowned = map[string]int{"prod": 2}
	got = cron.Judge([]cron.Expected{e}, []cron.Run{r}, noon)[0]
	assert.Equal(t, sandbox.False, got.Verdict, "what is known to be wrong goes before what is not known")
	e.Profiles = nil
	got = cron.Judge([]cron.Expected{e}, []cron.Run{run(cron.Usage, time.Minute, 0)}, noon)[0]
	assert.Equal(t, sandbox.Unknown, got.Verdict)
	assert.Equal(t, "no profile reports how much of its quota is used", got.Message)
}
