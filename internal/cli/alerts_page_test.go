package cli_test

import (
	"fmt"
	"strings"

	"sbx/internal/check"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// alertsPage is docs/ALERTS.md.
func alertsPage() string {
	var b strings.Builder
	b.WriteString(alertsHead)
	limits := triage.DefaultThresholds()
	for _, r := range check.Alerts() {
		held := "at once"
		if d := r.Duration(limits); d > 0 {
			held = sandbox.FormatDuration(d)
		}
		fmt.Fprintf(&b, "| `%s` | %s | `%s` | %s | %s | %s | `sbx %s` |\n", r.ID, r.Title, r.When(), held, r.Severity, r.Level, r.Next)
	}
	b.WriteString(alertsNames)
	for _, n := range check.Schema().Names {
		fmt.Fprintf(&b, "| `%s` | %s |\n", n.Name, n.Meaning)
	}
	b.WriteString(alertsTail)
	return b.String()
}

const alertsHead = `# Alerts

Generated from the program (` + "`make docs`" + `). An alert is a condition on the figures of one
provider, how long it must hold, and how severe it is. People are notified once when it fires and
once when it is over (` + "`recovered`" + `).

## Who evaluates them

` + "`cleanup` with --yes or an answer, `reconcile --check` and `--fix`, `verify`" + `, and each round of
` + "`cleanup --every`, `verify --every` and `verify --until-ok`" + `, by what they have read already. A plan
evaluates nothing: nobody is paged because somebody looks. ` + "`stats`" + ` shows what is pending or
firing. Other verbs only leave samples.

- A figure that the verb has not read is not known, and its alerts stay as they are: ` + "`reconcile`" + `
  neither fires nor ends ` + "`sandbox_stuck`" + `. A listing counts only where it was complete. A
  sandbox that could not be asked keeps "0 are stuck" from being known.
- What is known without the provider counts also while it does not answer, so that cleanup that
  fails because of that is noticed.
- ` + "`cleanup` and `reconcile`" + ` count what is left after they have acted.
- An evaluation never fails the verb, and delays its answer by 3 s of a slow store at most. Messages
  and pings are sent after the answer, for 10 s at most; a failure is a warning, and the exit
  code stays that of the answer. Between two rounds they are sent in the pause. Without a store
  there are no alerts, and one warning.

## The rules

The limits are those of ` + "`thresholds`" + ` in the configuration; the durations below are their
defaults.

| rule | title | condition | must hold | severity | level | next command |
|---|---|---|---|---|---|---|
`

const alertsNames = `
## The names

A condition compares names with numbers, durations and percentages
(` + "`sbx help conditions`" + `). A name that is not known makes it unknown, and
unknown changes nothing.

| name | meaning |
|---|---|
`

const alertsTail = `
## How an alert changes

| from | to | when | people |
|---|---|---|---|
| quiet | pending | the condition holds | |
| pending | firing | it has held for long enough | notified once |
| pending | quiet | it does not hold | |
| firing | quiet | it does not hold | ` + "`recovered`, once" + ` |

The state is a document in the store, changed by compare-and-set, so several processes and hosts
notify once. Times are those of the store's clock.

- A pause of more than two ` + "`thresholds.cleanup_every`" + ` is a data gap: it counts for nothing, and
  is told ("pending for 18m of 30m, data gap 12m").
- A clock that was set back changes no duration.
- One process sends. If it fails or dies, another one sends after a minute, only to the services
  that have not got it. A service may get a message twice where a process died after sending it;
  PagerDuty takes the second as the first.

## Where messages go

` + "```yaml" + `
notify:
  slack_env: SBX_SLACK_WEBHOOK
  pagerduty_env: SBX_PAGERDUTY_KEY
  routes: {critical: [pagerduty, slack], warning: [slack]}  # absent = every service
  levels: {vendor: [webhook]}                               # in place of routes
` + "```" + `

Services are ` + "`slack`, `pagerduty` and `webhook`" + `. ` + "`levels`" + ` chooses them
by the team that acts first: ` + "`agents`" + ` (the team of the agents), ` + "`infrastructure`" + ` or ` + "`vendor`" + `
(the provider's support); each message names it. An empty list is nobody.

The key of an alert is ` + "`alert/RULE/PROVIDER`" + ` on every host: PagerDuty's ` + "`dedup_key` is `sbx/`" + `
and the key. Any verb on any host resolves what another one has opened.

Messages about a run (` + "`failed`, `partial`, `unverified`, `refused`, `found`, `overdue`" + `) are sent
each time, with a key for host, profiles and layer (without a layer, the rule). The next good run
of the same key sends ` + "`recovered`" + ` once: a good run at another profile, or by another rule, does not.

Tasks that failed or reached a limit are told as a warning, unless a person watches ` + "`run`" + ` at the
terminal: one message for all tasks of a process, with those whose own process died and that it has
settled. Such an incident is closed by hand.

A route to a service without an address is a warning of every verb that evaluates alerts, of
` + "`doctor` and of `config explain`" + `.

` + "`--textfile` of cleanup and reconcile has `sbx_alert{rule,provider,severity}`" + `: 1 = it fires, 0 =
it does not, absent = not known.
`
