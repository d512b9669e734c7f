package cron

import (
	"fmt"
	"strings"
	"time"
)

// mostLine is how long a line may be, in bytes: Vixie cron and its children cut
// off at 1000 without a word.
const mostLine = 990

// crontabSchedule is when a layer runs, in the five fields of a crontab: from its offset
// on, every period.
func (j job) crontabSchedule(host string) string {
	first := j.firstMinute(host)
	if j.every >= time.Hour {
		return fmt.Sprintf("%d * * * *", first)
	}
	return fmt.Sprintf("%d-59/%d * * * *", first, int(j.every/time.Minute))
}

func (p Plan) crontabLine(e Entry) string { return e.Schedule + " " + p.shellCommand(e, crontabWord) }

// Crontab is the plan as lines of a crontab, for `crontab -e`.
func (p Plan) Crontab() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# The cleaning layers of sbx on %s. Add them with `crontab -e`; `sbx cron check`\n", commentLines(p.Host))
	b.WriteString("# proves that they ran. cron mails what a run prints: what was ended, and errors.\n")
	b.WriteString("#MAILTO=oncall@example.com\n")
	if len(p.Needs) > 0 {
		fmt.Fprintf(&b, "# They read %s from %s,\n# one NAME=value per line, for its owner alone (chmod 600).\n", strings.Join(p.Needs, " "), commentLines(p.EnvFile))
	}
	b.WriteString(p.remarkComments())
	for _, e := range p.Entries() {
		fmt.Fprintf(&b, "\n# %s: %s\n%s\n", e.job.name, e.Say, p.crontabLine(e))
	}
	for _, e := range p.offeredEntries() {
		fmt.Fprintf(&b, "\n# %s: %s.\n# That ends also what works; without the # of the next line you have it.\n#%s\n", e.job.name, e.Say, p.crontabLine(e))
	}
	return b.String()
}

// commentLines keeps a text on its line.
func commentLines(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '?'
		}
		return r
	}, text)
}
