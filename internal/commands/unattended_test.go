package commands

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/testkit/bubble"
	"sbx/internal/testkit/fake"
)

// TestAnUnattendedCleanupActsWhereItIsAllowed: a crontab line without --yes acts by the configuration or by its
// variable, within all guards, and else says both ways and proves no layer. What only makes a plan never acts.
func TestAnUnattendedCleanupActsWhereItIsAllowed(t *testing.T) {
	t.Parallel()
	const yes = "cleanup: {unattended: true}\n"
	for name, tc := range map[string]struct {
		file, env, line string
		tty             bool
		code, ended     int
		says            string
	}{
		"nobody allows it":       {line: "--older-than 10m -q", says: "`cleanup: {unattended: true}` in the configuration, or SBX_UNATTENDED=1 in the crontab"},
		"by its variable":        {env: "1", line: "--older-than 10m -q", ended: 4},
		"by the configuration":   {file: yes, line: "--older-than 10m -q", ended: 4},
		"the variable is nearer": {file: yes, env: "0", line: "--older-than 10m", says: "nothing was done"},
		"an odd variable":        {env: "maybe", line: "--older-than 10m", code: 2, says: "env SBX_UNATTENDED: must be 1 or 0"},
		"an odd configuration":   {file: "cleanup: {unattended: perhaps}\n", line: "--older-than 10m", code: 2, says: "unattended"},
		"a person is asked":      {file: yes, line: "--older-than 10m", tty: true, says: "nothing was done"},
		"a guard refuses":        {file: yes, line: "--older-than 10m --max-delete 3", code: 11, says: "max"},
		"no rule":                {file: yes, line: "", code: 11, says: "needs a selector"},
		"a dry run":              {file: yes, line: "--older-than 10m --dry-run"},
		"a plan is written":      {file: yes, line: "--older-than 10m --out PLAN"},
		"one is explained":       {file: yes, line: "--older-than 10m --explain prod/prod0001"},
		"a check of the plan":    {file: yes, line: "--older-than 10m --detailed-exitcode", code: 10},
		"a dry run, and yes":     {line: "--older-than 10m --dry-run --yes", code: 2, says: "--yes has no meaning"},
		"a dry run of a plan":    {line: "--apply PLAN --dry-run", code: 2, says: "exclude each other"},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			b, p := herdBench(t, 4)
			b.configureAnew(t, "providers:\n  prod: {type: local}\n"+tc.file)
			if tc.env != "" {
				b.env = append(b.env, "SBX_UNATTENDED="+tc.env)
			}
			b.tty, b.stdin = tc.tty, "no\n"
			r := b.run(t, strings.TrimSpace("cleanup --max-fraction 100% "+strings.ReplaceAll(tc.line, "PLAN", filepath.Join(b.home, "plan.json"))))
			assert.Equal(t, tc.code, r.code, r.stderr)
			assert.Len(t, p.Calls(fake.OpTerminate), tc.ended, r.stderr)
			assert.Contains(t, r.stderr, tc.says)
			if strings.Contains(tc.line, "--dry-run") || tc.ended > 0 {
				assert.NotContains(t, r.stderr, "nothing was done")
			}
			if tc.code != 2 && !tc.tty {
				green := b.run(t, "cron check --layer age").code == 0
				assert.Equal(t, tc.ended > 0, green, "a dry run is no run")
			}
		})
	}
}

// TestEveryNeedsLeave: a loop that would print plans for ever is a mistake.
func TestEveryNeedsLeave(t *testing.T) {
	t.Parallel()
	b, p := herdBench(t, 4)
	r := b.run(t, "cleanup --older-than 10m --every 5m")
	require.Equal(t, 2, r.code)
	assert.Contains(t, r.stderr, "--every needs --yes")
	assert.Contains(t, r.stderr, "SBX_UNATTENDED=1")
	assert.Empty(t, p.Calls())
}
