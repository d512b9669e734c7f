package runbook

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"sbx/internal/check"
	"sbx/internal/fault"
)

// New is a document that lints clean and says what to write where. Alert is one of sbx or of
// another system; "" = none.
func New(id, title, owner, alert string, now time.Time) (string, error) {
	if !isID(Word(id)) {
		return "", fault.Usage("%q is no id of a runbook", id).WithHint("small letters, digits and hyphens, beginning with a letter")
	}
	leads := ""
	if alert != "" {
		key := "other_alerts"
		if _, known := check.Alert(alert); known {
			key = "alerts"
		}
		leads = "  " + key + ": [" + quote(alert) + "]\n"
	}
	title = cmp.Or(title, capitalize(strings.ReplaceAll(id, "-", " ")))
	return fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata:\n  id: %s\n  title: %s\n  owner: %s\n  updated: %s\n  review_every: 180d\n%s",
		APIVersion, Kind, id, quote(title), quote(owner), now.Format(time.DateOnly), leads) + newSpec, nil
}

// newSpec is the rest of a new document. Its eta is the sum of its diagnosis.
const newSpec = `  eta: 7m
spec:
  meaning: What it means that the alert fires. Delete what you do not need.
  impact: Who notices, and what.
  steps:
    # A step is one of collect, check, manual, confirm, act and wait_until.
    - id: count
      collect: [count]
    - id: look
      title: Look at what is wrong
      manual: What a person looks at. A number that is a threshold is written as {{ thresholds.stuck_age }}.
      ask: What was found?
      commands: [sbx diagnose]
      eta: 5m
  procedures:
    - id: mitigate
      title: Mitigate
      steps:
        - id: do-it
          title: Do what ends it
          manual: What a person does.
          eta: 5m
        # Or what sbx does. A gate comes before it, and expect proves its effect:
        # - id: end-stuck
        #   title: Terminate what is stuck
        #   act:
        #     action: cleanup
        #     stuck: true
        #   gate: count
        #   expect: stats.stuck == 0
        #   within: 1m
        #   eta: 5m
  verification:
    - id: few-run
      check: verify.active_normal
      eta: 5m
`

// quote is a text as a value of one line.
func quote(text string) string {
	out, err := yaml.Marshal(strings.Join(strings.Fields(text), " "))
	if err != nil {
		return `""`
	}
	return strings.TrimSpace(string(out))
}
