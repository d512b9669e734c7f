package triage

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/sandbox"
)

// about makes a matter of a sandbox that has run for an hour.
func about(sig Signals) observation {
	return observation{s: old(time.Hour), sig: sig, t: DefaultThresholds(), now: noon()}
}

func logged(id string) *LogFindings {
	return &LogFindings{Complete: true, Lines: 1, Last: noon(), Hits: []Hit{{Pattern: Pattern{ID: id}, Count: 1, Sample: "the line"}}}
}

func TestSymptoms(t *testing.T) {
	t.Parallel()
	const none = -1
	fills := func(share int64, slope float64) *Trend { // of a limit so high that only the share decides
		return &Trend{MemoryBytes: new(share * 1000 * sandbox.MiB), MemoryLimitBytes: new(int64(100 * 1000 * sandbox.MiB)), MemorySlope: &slope}
	}
	young := observation{s: old(10 * time.Minute), sig: Signals{}, t: DefaultThresholds(), now: noon()}
	ended := observation{s: sandbox.Sandbox{State: sandbox.StateFailed}, sig: Signals{}, t: DefaultThresholds(), now: noon()}
	for name, tc := range map[string]struct {
		got  Symptom
		want sandbox.Verdict
	}{
		"processor at 95":          {about(Signals{Trend: trend(95, none, "")}).cpuAtLimit(), sandbox.True},
		"processor at 94.9":        {about(Signals{Trend: trend(94.9, none, "")}).cpuAtLimit(), sandbox.False},
		"processor not sampled":    {about(Signals{}).cpuAtLimit(), sandbox.Unknown},
		"processor not reported":   {about(Signals{Trend: &Trend{}}).cpuAtLimit(), sandbox.Unknown},
		"rests at 0.9":             {about(Signals{Trend: trend(0.9, none, "")}).cpuAtRest(3), sandbox.True},
		"does not rest at 1":       {about(Signals{Trend: trend(1, none, "")}).cpuAtRest(3), sandbox.False},
		"over the stuck age":       {about(Signals{}).neverCompletes(), sandbox.True},
		"exactly the stuck age":    {young.neverCompletes(), sandbox.False},
		"ended":                    {ended.neverCompletes(), sandbox.False},
		"no errors":                {about(Signals{Logs: &LogFindings{Complete: true}}).noErrors(), sandbox.True},
		"one error":                {about(Signals{Logs: &LogFindings{Complete: true, Errors: 1}}).noErrors(), sandbox.False},
		"errors not read":          {about(Signals{}).noErrors(), sandbox.Unknown},
		"1000 operations":          {about(Signals{Trend: trend(none, 1000, "")}).manyOperations(), sandbox.True},
		"999 operations":           {about(Signals{Trend: trend(none, 999, "")}).manyOperations(), sandbox.False},
		"operations not reported":  {about(Signals{Trend: &Trend{}}).manyOperations(), sandbox.Unknown},
		"20 of 50 lines":           {about(Signals{Logs: &LogFindings{Complete: true, Last: noon(), Lines: 50, Repeat: Repeat{"x", 20}}}).noProgress(), sandbox.True},
		"19 of 50 lines":           {about(Signals{Logs: &LogFindings{Complete: true, Last: noon(), Lines: 50, Repeat: Repeat{"x", 19}}}).noProgress(), sandbox.False},
		"silent is no progress":    {about(Signals{Logs: quietFor(time.Hour)}).noProgress(), sandbox.True},
		"progress not read":        {about(Signals{}).noProgress(), sandbox.Unknown},
		"lines without times":      {about(Signals{Logs: &LogFindings{Complete: true, Lines: 9}}).noProgress(), sandbox.Unknown},
		"pattern logged":           {about(Signals{Logs: logged("recursion")}).loggedSymptom(1, "recursion"), sandbox.True},
		"other pattern logged":     {about(Signals{Logs: logged("auth")}).loggedSymptom(1, "recursion"), sandbox.False},
		"patterns not read":        {about(Signals{}).loggedSymptom(1, "recursion"), sandbox.Unknown},
		"last line is a call":      {about(Signals{Logs: &LogFindings{Complete: true, Lines: 1, Calling: true, Call: "h"}}).lastCall(), sandbox.True},
		"last line is no call":     {about(Signals{Logs: &LogFindings{Complete: true, Lines: 1}}).lastCall(), sandbox.False},
		"no last line":             {about(Signals{Logs: &LogFindings{Complete: true}}).lastCall(), sandbox.Unknown},
		"waits on tcp":             {about(Signals{Trend: &Trend{Waiting: "tcp 1.2.3.4:5"}}).waitsForPeer(), sandbox.True},
		"waits on a sleep":         {about(Signals{Trend: &Trend{Waiting: "sleep"}}).waitsForPeer(), sandbox.False},
		"waiting cannot be seen":   {about(Signals{Trend: &Trend{}}).waitsForPeer(), sandbox.Unknown},
		"memory grows":             {about(Signals{Trend: new(TrendOf([]sandbox.Usage{mem(0, 1), mem(60, 11)}, DefaultThresholds()))}).memoryGrows(), sandbox.True},
		"memory stands":            {about(Signals{Trend: new(TrendOf([]sandbox.Usage{mem(0, 1), mem(60, 1)}, DefaultThresholds()))}).memoryGrows(), sandbox.False},
		"one sample of memory":     {about(Signals{Trend: new(TrendOf([]sandbox.Usage{mem(0, 1)}, DefaultThresholds()))}).memoryGrows(), sandbox.Unknown},
		"90 percent, and grows":    {about(Signals{Trend: fills(90, 10)}).fillsUp(), sandbox.True},
		"89 percent, and grows":    {about(Signals{Trend: fills(89, 10)}).fillsUp(), sandbox.False},
		"90 percent, and stands":   {about(Signals{Trend: fills(90, 0)}).fillsUp(), sandbox.False},
		"full in 10 minutes":       {about(Signals{Trend: fills(50, 5000)}).fillsUp(), sandbox.True},
		"full in 11 minutes":       {about(Signals{Trend: fills(50, 4545)}).fillsUp(), sandbox.False},
		"90 percent, no slope":     {about(Signals{Trend: &Trend{MemoryBytes: new(int64(90)), MemoryLimitBytes: new(int64(100))}}).fillsUp(), sandbox.Unknown},
		"no limit":                 {about(Signals{Trend: &Trend{MemoryBytes: new(int64(1)), MemorySlope: new(50.0)}}).fillsUp(), sandbox.Unknown},
		"a limit of zero":          {about(Signals{Trend: &Trend{MemoryBytes: new(int64(1)), MemoryLimitBytes: new(int64(0)), MemorySlope: new(50.0)}}).fillsUp(), sandbox.Unknown},
		"memory not sampled":       {about(Signals{}).fillsUp(), sandbox.Unknown},
		"silence over the limit":   {about(Signals{Logs: quietFor(61 * time.Second)}).silentSymptom(1), sandbox.True},
		"silence at the limit":     {about(Signals{Logs: quietFor(60 * time.Second)}).silentSymptom(1), sandbox.False},
		"silence that is not read": {about(Signals{}).silentSymptom(1), sandbox.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, tc.want, tc.got.Verdict)
			assert.Positive(t, tc.got.Weight)
			assert.NotEmpty(t, tc.got.Say)
		})
	}
}

func TestFleetSymptoms(t *testing.T) {
	t.Parallel()
	n := func(v int64) *int64 { return &v }
	fleet := func(f FleetSignals) observation { return about(Signals{Fleet: &f}) }
	starting := func(age time.Duration, active, provisioning int64) observation {
		m := fleet(FleetSignals{Active: &active, Provisioning: &provisioning})
		m.s.State, m.s.CreatedAt = sandbox.StateProvisioning, noon().Add(-age)
		return m
	}
	uncounted := starting(time.Hour, 0, 1)
	uncounted.sig.Fleet.Active = nil
	history := func(counts ...ActiveCount) observation { return fleet(FleetSignals{History: counts}) }
	ago := func(d time.Duration, active int64) ActiveCount { return ActiveCount{noon().Add(-d), active} }
	for name, tc := range map[string]struct {
		got  Symptom
		want sandbox.Verdict
	}{
		"old ones":                  {fleet(FleetSignals{OverStuckAge: n(1)}).oldOnesPile(), sandbox.True},
		"no old ones":               {fleet(FleetSignals{OverStuckAge: n(0)}).oldOnesPile(), sandbox.False},
		"old ones not counted":      {fleet(FleetSignals{}).oldOnesPile(), sandbox.Unknown},
		"no fleet":                  {about(Signals{}).oldOnesPile(), sandbox.Unknown},
		"creates fail":              {fleet(FleetSignals{CreateFailures: n(1)}).cannotCreate(), sandbox.True},
		"creates work":              {fleet(FleetSignals{CreateFailures: n(0)}).cannotCreate(), sandbox.False},
		"cleanup two intervals ago": {fleet(FleetSignals{CleanupRead: true, CleanupSeen: noon().Add(-10 * time.Minute)}).noCleanupSeen(), sandbox.False},
		"cleanup longer ago":        {fleet(FleetSignals{CleanupRead: true, CleanupSeen: noon().Add(-10*time.Minute - 1)}).noCleanupSeen(), sandbox.True},
		"cleanup never":             {fleet(FleetSignals{CleanupRead: true}).noCleanupSeen(), sandbox.True},
		"cleanup not read":          {fleet(FleetSignals{}).noCleanupSeen(), sandbox.Unknown},
		"no fleet, no cleanup":      {about(Signals{}).noCleanupSeen(), sandbox.Unknown},
		"active grows":              {history(ago(0, 4), ago(5*time.Minute, 3)).activeGrows(), sandbox.True},
		"active stands":             {history(ago(0, 3), ago(5*time.Minute, 3)).activeGrows(), sandbox.False},
		"too short to tell":         {history(ago(0, 9), ago(5*time.Minute-1, 3)).activeGrows(), sandbox.Unknown},
		"one sample":                {history(ago(0, 9)).activeGrows(), sandbox.Unknown},
		"no history":                {about(Signals{}).activeGrows(), sandbox.Unknown},
		"all stuck in provisioning": {starting(5*time.Minute+1, 0, 1).allProvisioning(), sandbox.True},
		"all on their way":          {starting(5*time.Minute, 0, 1).allProvisioning(), sandbox.False},
		"of unknown age":            {starting(-time.Hour, 0, 1).allProvisioning(), sandbox.Unknown},
		"one is active":             {starting(time.Hour, 1, 9).allProvisioning(), sandbox.False},
		"this one runs":             {fleet(FleetSignals{Active: n(0), Provisioning: n(1)}).allProvisioning(), sandbox.False},
		"none at all":               {starting(time.Hour, 0, 0).allProvisioning(), sandbox.False},
		"active not counted":        {uncounted.allProvisioning(), sandbox.Unknown},
		"this one runs, uncounted":  {fleet(FleetSignals{}).allProvisioning(), sandbox.False},
		"a quota is nearly used up": {fleet(FleetSignals{QuotaUsed: new(0.8)}).quotaRunsShort(), sandbox.True},
		"the quotas have room":      {fleet(FleetSignals{QuotaUsed: new(0.79)}).quotaRunsShort(), sandbox.False},
		"no quota is told":          {fleet(FleetSignals{}).quotaRunsShort(), sandbox.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, tc.want, tc.got.Verdict)
		})
	}
}

// TestAQuotaIsAFigure: what is used, of what, and when it is full if it grows as before.
func TestAQuotaIsAFigure(t *testing.T) {
	t.Parallel()
	ago := func(d time.Duration, active int64) ActiveCount {
		return ActiveCount{At: noon().Add(-d), Active: active}
	}
	grown := []ActiveCount{ago(0, 48), ago(10*time.Minute, 44)}
	for name, tc := range map[string]struct {
		sig  FleetSignals
		want string
	}{
		"a share alone": {FleetSignals{}, "96%"},
		"no history":    {FleetSignals{Quota: &QuotaUse{48, 50, "sandboxes"}}, "48 of 50"},
		"it grows":      {FleetSignals{Quota: &QuotaUse{48, 50, "sandboxes"}, History: grown}, "48 of 50, full in 5m"},
		"it shrinks":    {FleetSignals{Quota: &QuotaUse{48, 50, "sandboxes"}, History: []ActiveCount{ago(0, 4), ago(10*time.Minute, 44)}}, "48 of 50"},
		"of another":    {FleetSignals{Quota: &QuotaUse{96, 100, "cores"}, History: grown}, "96 of 100 cores"},
		"it is full":    {FleetSignals{Quota: &QuotaUse{50, 50, "sandboxes"}, History: grown}, "50 of 50"},
	} {
		tc.sig.QuotaUsed = new(0.96)
		got := about(Signals{Fleet: &tc.sig}).quotaRunsShort()
		assert.Equal(t, tc.want, got.Evidence[0].Value, name)
	}
}

func TestSilence(t *testing.T) {
	t.Parallel()
	at := func(ago time.Duration) sandbox.Sandbox {
		return with(old(time.Hour), func(s *sandbox.Sandbox) { s.LastActivityAt, s.ActivityBasis = noon().Add(-ago), sandbox.BasisOutput })
	}
	for name, tc := range map[string]struct {
		s      sandbox.Sandbox
		logs   *LogFindings
		quiet  time.Duration
		source string
		known  bool
	}{
		"nothing":                   {old(time.Hour), nil, 0, "", false},
		"record":                    {at(time.Minute), nil, time.Minute, "last_activity_at", true},
		"log":                       {old(time.Hour), quietFor(time.Second), time.Second, "log", true},
		"the later of both":         {at(time.Minute), quietFor(time.Second), time.Second, "log", true},
		"the later is the record":   {at(time.Second), quietFor(time.Minute), time.Second, "last_activity_at", true},
		"record, log without times": {at(time.Second), &LogFindings{Complete: true, Lines: 1}, time.Second, "last_activity_at", true},
		"log without times":         {old(time.Hour), &LogFindings{Complete: true, Lines: 1}, 0, "", false},
		"empty log":                 {old(time.Hour), &LogFindings{Complete: true}, time.Hour, "empty log", true},
		"empty log, no age":         {sandbox.Sandbox{}, &LogFindings{Complete: true}, 0, "empty log", false},
		"record from the future":    {at(-1), nil, 0, "", false},
		"log from the future":       {at(time.Minute), quietFor(-1), 0, "", false},
		"right now":                 {at(0), nil, 0, "last_activity_at", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sign := latestSign(tc.s, Signals{Logs: tc.logs}, noon())
			assert.Equal(t, tc.known, sign.known)
			assert.Equal(t, tc.source, sign.source)
			assert.Equal(t, tc.quiet, sign.ago)
		})
	}
}

// TestSymptomsAreTheRunbooks ties each of the five causes to the symptoms that
// the runbook lists for it.
func TestSymptomsAreTheRunbooks(t *testing.T) {
	t.Parallel()
	// the comments have the rows of docs/REQUIREMENTS.md, in the same order
	want := map[string][]string{
		"infinite_loop": { // R59, R60, R61, R62, R36, R39, R65
			"CPU is at its limit", "it does not complete", "its log reports no errors", "it does very many operations", "its log shows no progress",
			"the log shows recursion", "the log shows iterations",
		},
		"external_hang": { // R71, R72, R73, R74, R38, R76
			"CPU is idle", "silent for more than 1m", "its last action is a call to an external service", "waits for a peer that does not answer",
			"the log shows operation_timed_out", "the log shows request_timeout",
		},
		"cleanup_not_running": { // R82, R83, R84, R56
			"sandboxes over the stuck age", "no cleanup ran", "the number of active sandboxes grows", "the log shows cleanup_failed",
		},
		"state_corruption": { // R94, S1-60, R95, R96
			"listed as running but does not exist", "its record says that it has ended, but it runs", "record and process disagree", "the log shows sandbox_not_found",
		},
		"resource_exhaustion": { // R106, R108, R109, R107, R111
			"creates that failed", "all sandboxes are stuck in provisioning", "a quota of the account is nearly exhausted", "the log shows resource_limit",
			"the log shows sandbox_limit",
		},
	}
	ids := map[string]bool{}
	for _, p := range Patterns() {
		ids[p.ID] = true
	}
	found := 0
	for _, th := range causeRules() {
		var says []string
		for _, s := range th.symptoms(about(Signals{})) {
			says = append(says, s.Say)
			if id, isPattern := patternOf(s); isPattern {
				assert.True(t, ids[id], "%s asks for the pattern %q, which does not exist", th.id, id)
			}
		}
		if w, listed := want[th.id]; listed {
			found++
			require.Equal(t, w, says, th.id)
		}
	}
	assert.Len(t, want, found)
}

func patternOf(s Symptom) (string, bool) {
	const intro = "the log shows "
	if len(s.Say) > len(intro) && s.Say[:len(intro)] == intro {
		return s.Say[len(intro):], true
	}
	return "", false
}
