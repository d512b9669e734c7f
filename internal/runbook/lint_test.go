package runbook_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/check"
	"sbx/internal/cond"
	"sbx/internal/runbook"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// act is a step that ends sandboxes; further keys are indented by six blanks.
const act = `    - id: end
      title: End them
      eta: 1m
      act:
        action: cleanup
        stuck: true
`

func TestLint(t *testing.T) {
	t.Parallel()
	const count = "    - id: count\n      collect: [count]\n"
	step := func(text string) []string { return []string{count, count + text} }
	acting := func(text string) []string { // a step of a procedure
		indented := "    " + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n    ") + "\n"
		return []string{"  verification:\n", "  procedures:\n    - id: p\n      title: P\n      steps:\n" + indented + "  verification:\n"}
	}
	cleanup := func(keys string) string {
		return strings.Replace(act, "stuck: true", keys, 1) + "      gate: yes\n      expect: stats.stuck == 0\n      within: 1m\n"
	}
	spec := func(text string) []string { return []string{"  steps:\n", text + "  steps:\n"} }
	for name, tc := range map[string]struct {
		change []string // from, to
		want   string   // the one finding; "" = none
	}{
		"an unknown collector":      {[]string{"[count]", "[cuont]\n      title: x\n      eta: 2m"}, `15:17 error reference no collector is called "cuont"`},
		"an unknown alert":          {[]string{"  eta: 2m\n", "  eta: 2m\n  alerts: [sandbox_stuk]\n"}, `10:12 error reference no alert of sbx is called "sandbox_stuk"`},
		"requirements":              {[]string{"[count]", "[count]\n      rows: [R1]"}, `16:7 warning old-name rows is not read any more`},
		"an unknown contact":        {spec("  escalation:\n    - alert: create_failing\n      to: nobody\n"), `15:11 error reference no contact is called "nobody"`},
		"a contact that nobody has": {spec("  contacts:\n    - id: a\n      level: vendor\n      name: A\n      about: b\n"), `14:11 warning unused no escalation goes to a`},
		"two whens":                 {spec("  contacts:\n    - id: a\n      level: vendor\n      name: A\n      about: b\n  escalation:\n    - alert: create_failing\n      when: stats.active > 1\n      to: a\n"), `19:7 error step-kind an escalation names an alert or a condition`},
		"an unknown cause":          {spec("  causes:\n    - theory: infinite_lop\n      steps:\n        - id: x\n          title: X\n          manual: x\n          eta: 1m\n"), `14:15 error reference no cause is called "infinite_lop"`},
		"an unreachable cause":      {spec("  causes:\n    - theory: infinite_loop\n      steps:\n        - id: x\n          title: X\n          manual: x\n          eta: 1m\n"), `14:15 error unreachable-cause no step collects what shows infinite_loop`},
		"an unknown runbook":        {spec("  causes:\n    - theory: resource_exhaustion\n      see: othr\n      steps:\n        - id: x\n          title: X\n          manual: x\n          eta: 1m\n"), `15:12 error reference no runbook is called "othr"`},
		"an unknown placeholder":    {[]string{"Something is wrong", "It is {{ thresholds.stuck_ag }} old"}, `11:18 error reference no value is called "thresholds.stuck_ag"`},
		"a known placeholder":       {[]string{"Something is wrong", "It is {{ thresholds.stuck_age }} old, {{ stats.active }} run, {{run.attempts}}"}, ""},
		"an open placeholder":       {[]string{"Something is wrong", "It is {{ thresholds.stuck_age old"}, `11:12 error reference a {{ without its }}`},
		"a variable that is used":   {[]string{"  meaning: S", "  vars:\n    - id: limit\n      default: 7m\n      about: x\n  meaning: {{ vars.limit }} S"}, "syntax"},
		"an unused variable":        {spec("  vars:\n    - id: limit\n      default: 7m\n      about: x\n"), `14:11 warning unused nothing names vars.limit`},
		"a bad variable":            {append(spec("  vars:\n    - id: limit\n      default: soon\n      about: x\n"), "Something", "{x} {{ vars.limit }} Something"), "error"},
		"an expression":             {step("    - id: c\n      title: C\n      check: stats.activ > 3\n"), `18:14 error expression no name "stats.activ"`},
		"an expression in quotes":   {step("    - id: c\n      title: C\n      check: \"1 < 2 and stats.activ > 3\"\n"), `error expression`},
		"a block of conditions":     {step("    - id: c\n      title: C\n      check: |\n        stats.active > 3 and\n        stats.activ > 3\n"), `20:9 error expression no name "stats.activ"`},
		"not collected":             {step("    - id: c\n      title: C\n      check: records.differ > 3\n"), `18:14 error not-collected no step before this one collects records.differ`},
		"an alert not collected":    {step("    - id: c\n      check: alert.orphans_found\n"), `17:14 error not-collected no step before this one collects records.orphans`},
		"no gate":                   {acting(act + "      expect: stats.stuck == 0\n      within: 1m\n"), `24:13 error no-gate step end is destructive and has no gate`},
		"no proof":                  {acting(act + "      gate: count\n"), `error no-proof step end does not prove its effect`},
		"an act of a cause":         {acting("    - id: end\n      title: End\n      eta: 1m\n      gate: yes\n      within: 1m\n      expect: stats.stuck == 0\n      act: {action: terminate, targets: cause}\n"), "26:45 error step-kind only a step of a cause"},
		"a key of another action":   {acting("    - id: end\n      title: End\n      eta: 1m\n      gate: yes\n      within: 1m\n      expect: stats.stuck == 0\n      act: {action: reconcile, stuck: true}\n"), "26:43 error step-kind reconcile takes no stuck"},
		"an act that diagnoses":     {step(act + "      gate: yes\n      expect: stats.stuck == 0\n      within: 1m\n"), "20:9 error step-kind step end acts, and the diagnosis changes nothing"},
		"an act that verifies":      {[]string{"  verification:\n", "  verification:\n" + act + "      gate: yes\n      expect: stats.stuck == 0\n      within: 1m\n"}, "21:9 error step-kind step end acts, and the verification changes nothing"},
		"an idle time":              {acting(cleanup("idle_for: soon")), "25:23 error expression idle_for: "},
		"an age":                    {acting(cleanup("older_than: old")), "25:25 error expression older_than: "},
		"a share of the quota":      {acting(cleanup("if_usage_above: 900%")), "25:29 error expression if_usage_above: "},
		"a condition of an act":     {acting(cleanup("where: idle_secs > 4s")), `25:20 error expression where: no name "idle_secs"`},
		"values that can be read":   {acting(cleanup("older_than: '{{ thresholds.stuck_age }}'\n        idle_for: 11m\n        where: state == \"running\"\n        if_usage_above: 77%")), ""},
		"a review to come":          {[]string{"updated: 2026-11-23", "updated: 2027-11-23"}, "7:12 warning stale the last review is in the future, on 2027-11-23"},
		"a sandbox without --ref":   {[]string{count, "    - id: all\n      collect: [diagnose]\n      title: All\n      eta: 2m\n    - id: c\n      title: C\n      check: sandbox.state == \"running\"\n"}, "20:14 warning not-collected sandbox.state is known only in a run with --ref"},
		"no eta":                    {step("    - id: m\n      title: M\n      manual: m\n"), `16:7 error eta step m has no eta`},
		"no title":                  {step("    - id: m\n      manual: m\n      eta: 1m\n"), `16:7 error syntax step m has no title`},
		"nothing to do":             {step("    - id: m\n      title: M\n      eta: 1m\n"), `16:7 error step-kind step m does nothing`},
		"two things to do":          {step("    - id: m\n      title: M\n      eta: 1m\n      manual: x\n      confirm: y\n"), `16:7 error step-kind step m does several things: manual, confirm`},
		"a key of another kind":     {step("    - id: m\n      title: M\n      eta: 1m\n      manual: x\n      gate: yes\n"), `20:13 error step-kind gate does not belong to a step of kind manual`},
		"a wait without limit":      {step("    - id: m\n      title: M\n      eta: 1m\n      wait_until: stats.active < 3\n"), `error no-proof step m waits without a limit`},
		"a limit below within":      {step("    - id: m\n      title: M\n      eta: 1m\n      wait_until: stats.active < 3\n      within: 5m\n      timeout: 1m\n"), `error eta the step ends after 1m, before 5m of within`},
		"an id twice":               {step("    - id: count\n      title: M\n      eta: 1m\n      manual: x\n"), `16:11 error duplicate another step is called count`},
		"an old name":               {[]string{count, "    - id: all\n      collect: [verify]\n      title: All\n      eta: 2m\n    - id: c\n      title: C\n      check: verify.R129 == false\n"}, `20:14 warning old-name the next release does not read verify.R129`},
		"the sum":                   {[]string{"  eta: 2m", "  eta: 3m"}, `9:8 warning eta-sum the steps take 2m, not 3m`},
		"a stale one":               {[]string{"updated: 2026-11-23", "updated: 2026-01-23"}, `7:12 warning stale the last review was on 2026-01-23, and one was due on 2026-07-22`},
		"a number in words":         {[]string{"Something is wrong", "It is 10 minutes old"}, `11:18 warning number "10 minutes" is also the default of thresholds.stuck_age`},
		"a number with a unit":      {[]string{"Something is wrong", "It is 10m old"}, `11:18 warning number "10m" is also`},
		"a share":                   {[]string{"Something is wrong", "More than 5 % fail"}, `11:22 warning number "5 %" is also the default of thresholds.timeout_rate_high`},
		"a count":                   {[]string{"Something is wrong", "More than 20 sandboxes run"}, `11:22 warning number "20 sandboxes" is also the default of thresholds.active`},
		"another number":            {[]string{"Something is wrong", "Version 1.10m, 11 minutes, 20 agents, -10m"}, ""},
		"a bad id":                  {[]string{"id: my-alert", "id: My_alert"}, `4:7 error reference "My_alert" is no id`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			content := minimal
			for i := 0; i < len(tc.change); i += 2 {
				require.Contains(t, content, tc.change[i])
				content = strings.Replace(content, tc.change[i], tc.change[i+1], 1)
			}
			got := found(t, content)
			if tc.want == "" {
				assert.Empty(t, got)
			}
			assert.Contains(t, strings.Join(got, "\n"), tc.want)
			if strings.Contains(tc.want, ":") {
				var others []string
				for _, line := range got {
					if !strings.Contains(line, tc.want) && !strings.Contains(line, "the steps take") {
						others = append(others, line)
					}
				}
				assert.Empty(t, others, "one mistake is one finding")
			}
		})
	}
}

// TestLinesAreHeldAgainstTheProgram, with placeholders filled.
func TestLinesAreHeldAgainstTheProgram(t *testing.T) {
	t.Parallel()
	var seen []string
	check := func(line string) error {
		seen = append(seen, line)
		return errors.New("no such flag")
	}
	list := shipped(t).Lint(runbook.Context{Now: now(), CheckLine: check})
	assert.Contains(t, seen, "sbx cleanup --stuck --older-than 10m")
	assert.Contains(t, seen, "sbx terminate REF...")
	assert.Len(t, list, len(seen))
}

// TestRunbooksTogether: an id and an alert belong to one runbook.
func TestRunbooksTogether(t *testing.T) {
	t.Parallel()
	parse := func(file, from, to string) *runbook.Runbook {
		book, list := runbook.Parse(file, []byte(strings.Replace(minimal, from, to, 1)))
		require.Empty(t, list)
		return book
	}
	alerts := "  eta: 2m\n  alerts: [create_failing]\n"
	a, b, c := parse("a.yaml", "  eta: 2m\n", alerts), parse("b.yaml", "  eta: 2m\n", alerts), parse("c.yaml", "id: my-alert\n  title: My alert\n  owner: Agent Team\n  updated: 2026-11-23\n  review_every: 180d\n  eta: 2m\n", "id: other\n  title: My alert\n  owner: Agent Team\n  updated: 2026-11-23\n  review_every: 180d\n"+alerts)
	list := runbook.LintAll([]*runbook.Runbook{a, b, c})
	require.Len(t, list, 2)
	assert.Equal(t, "b.yaml:4:7 my-alert is also the id of a.yaml", list[0].Place()+" "+list[0].Message)
	assert.Equal(t, "c.yaml:10:12 create_failing leads to my-alert already", list[1].Place()+" "+list[1].Message)
}

// TestHintsOfAlerts: an alert of another system, and one that a runbook of the operator has.
func TestHintsOfAlerts(t *testing.T) {
	t.Parallel()
	with := func(file, id, key, alert string) *runbook.Runbook {
		text := strings.Replace(minimal, "  eta: 2m\n", "  eta: 2m\n  "+key+": ["+alert+"]\n", 1)
		book, list := runbook.Parse(file, []byte(strings.Replace(text, "id: my-alert", "id: "+id, 1)))
		require.Empty(t, list)
		return book
	}
	list := with("a.yaml", "a", "alerts", "AgentSlow").Lint(runbook.Context{Now: now()})
	require.Len(t, list, 1)
	assert.Equal(t, "an alert of another system belongs under other_alerts", list[0].Hint)
	list = runbook.LintAll([]*runbook.Runbook{with("a.yaml", "a", "other_alerts", "AgentSlow"), with("b.yaml", "b", "other_alerts", "AgentSlow")})
	require.Len(t, list, 1)
	assert.Equal(t, "an alert has one runbook: take it out of this one, or out of a.yaml", list[0].Hint)
}

// TestRunbooksThatSendOneToAnother: what is about a cause must not lead back.
func TestRunbooksThatSendOneToAnother(t *testing.T) {
	t.Parallel()
	parse := func(id, see string) *runbook.Runbook {
		text := strings.Replace(minimal, "id: my-alert", "id: "+id, 1)
		text = strings.Replace(text, "  verification:\n", "  causes:\n    - theory: resource_exhaustion\n      see: "+see+"\n      steps:\n        - id: x\n          title: X\n          manual: x\n          eta: 1m\n  verification:\n", 1)
		book, list := runbook.Parse(id+".yaml", []byte(text))
		require.Empty(t, list)
		return book
	}
	assert.Empty(t, runbook.LintAll([]*runbook.Runbook{parse("a", "b"), parse("b", "c")}))
	list := runbook.LintAll([]*runbook.Runbook{parse("a", "b"), parse("b", "a"), parse("c", "b"), parse("d", "d")})
	require.Len(t, list, 3)
	assert.Equal(t, "a.yaml:18:12 about resource_exhaustion it sends to b, which leads back: a -> b -> a", list[0].Place()+" "+list[0].Message)
	assert.Equal(t, "b.yaml", list[1].File)
	assert.Equal(t, "d.yaml:18:12 about resource_exhaustion it sends to d, which leads back: d -> d", list[2].Place()+" "+list[2].Message)
}

// TestEveryAlertHasARunbook, and each cause leads to a shipped one.
func TestEveryAlertHasARunbook(t *testing.T) {
	t.Parallel()
	catalog := shipped(t)
	for _, r := range check.Alerts() {
		n := 0
		for _, b := range catalog.Books {
			if slices.Contains(b.AlertNames(), r.ID) {
				n++
			}
		}
		assert.Equal(t, 1, n, r.ID)
	}
	for _, possible := range triage.PossibleCauses() {
		_, err := catalog.Find(runbook.ForCause(possible.ID))
		require.NoError(t, err, possible.ID)
		assert.NotEmpty(t, possible.Title)
	}
}

// TestFacts: conditions read what collectors have read; what they have not is unknown.
func TestFacts(t *testing.T) {
	t.Parallel()
	vars := []runbook.Var{{ID: "limit", Default: "7m", About: "x"}, {ID: "share", Default: "5%", About: "x"}, {ID: "n", Default: "3", About: "x"}}
	facts := &runbook.Facts{Cause: "infinite_loop", Checks: map[string]sandbox.Verdict{"active_normal": "true", "none_over_age": "false"}}
	facts.Limits = triage.DefaultThresholds()
	facts.Figures.Active = new(int64(21))
	for text, want := range map[string]string{
		"stats.active > stats.thresholds.active_max": "true",
		"alert.sandbox_leak_detected":                "true",
		"alert.orphans_found":                        "unknown",
		"verify.active_normal":                       "true",
		"verify.none_over_age":                       "false",
		"verify.cleanup_recent":                      "unknown",
		`diagnose.cause == "infinite_loop"`:          "true",
		"thresholds.stuck_age == 10m":                "true",
		"thresholds.timeout_rate_high == 5%":         "true",
		"vars.limit > 6m and vars.share == 5%":       "true",
		"stats.active > vars.n":                      "true",
		`sandbox.state == "running"`:                 "unknown",
		"quota.used >= thresholds.quota_near":        "unknown",
	} {
		c, err := cond.Compile(text, runbook.Schema(vars))
		require.NoError(t, err, text)
		assert.Equal(t, want, string(c.Eval(facts)), text)
	}
}

// BenchmarkLintShipped is all shipped documents from their bytes; the budget is 100 ms.
func BenchmarkLintShipped(b *testing.B) {
	for b.Loop() {
		if list := shipped(b).Lint(runbook.Context{Now: time.Date(2026, 11, 24, 0, 0, 0, 0, time.UTC)}); len(list) > 0 {
			b.Fatal(list)
		}
	}
}
