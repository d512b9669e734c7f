package runbook

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode"

	"go.yaml.in/yaml/v3"

	"sbx/internal/fault"
)

// New is a document that lints clean and says what to write where. Alert is one of sbx or of
// another system; "" = none.
func New(id, title, owner, alert string, now time.Time) (string, error) {
	if !isID(Word(id)) {
		return "", fault.Usage("%q is no id of a runbook", id).WithHint("small letters, digits and hyphens, beginning with a letter")
	}
	d := draft{id: id, title: cmp.Or(title, capitalize(strings.ReplaceAll(id, "-", " "))), owner: owner, alert: alert, now: now}
	d.meaning = "What it means that the alert fires. Delete what you do not need."
	d.impact = "Who notices, and what."
	d.rest = `  steps:
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
      check: verify.R125
      eta: 5m
`
	d.eta = "7m"
	return d.String(), nil
}

// draft is a document as text.
type draft struct {
	id, title, owner, alert string
	now                     time.Time
	eta                     string
	meaning, impact, rest   string
}

// String is the document.
func (d draft) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: %s\nkind: %s\nmetadata:\n  id: %s\n  title: %s\n  owner: %s\n  updated: %s\n  review_every: 180d\n", APIVersion, Kind, d.id, quote(d.title), quote(d.owner), d.now.Format(time.DateOnly))
	if d.alert != "" {
		key := "other_alerts"
		if _, known := AlertRule(Word(d.alert)); known {
			key = "alerts"
		}
		fmt.Fprintf(&b, "  %s: [%s]\n", key, quote(d.alert))
	}
	fmt.Fprintf(&b, "  eta: %s\nspec:\n  meaning: %s\n  impact: %s\n%s", d.eta, block(d.meaning, 4), block(d.impact, 4), d.rest)
	return b.String()
}

// quote is a text as a value of one line.
func quote(text string) string {
	out, err := yaml.Marshal(strings.Join(strings.Fields(text), " "))
	if err != nil {
		return `""`
	}
	return strings.TrimSpace(string(out))
}

// block is a text as a value, of several lines where it has some.
func block(text string, indent int) string {
	text = strings.TrimSpace(strings.ReplaceAll(text, "\t", "    "))
	if !strings.Contains(text, "\n") {
		return quote(text)
	}
	pad := "\n" + strings.Repeat(" ", indent)
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		lines = append(lines, strings.TrimRightFunc(line, unicode.IsSpace))
	}
	return strings.TrimRight("|"+pad+strings.Join(lines, pad), " ")
}

var heading = regexp.MustCompile(`^(#{1,6})\s+(.*?)\s*#*\s*$`)

// chapter is a heading of Markdown with what follows it, as it was written.
type chapter struct {
	title string
	level int
	text  []string
}

// Import makes a document of a Markdown runbook: each heading becomes a manual step, with its text and
// its blocks of code as they are. The id is that of the runbook; a fence that is never closed is
// refused with its line.
func Import(file, id, markdown string, now time.Time) (string, error) {
	if !isID(Word(id)) {
		return "", fault.Usage("%q is no id of a runbook", id).WithHint("--id gives one: small letters, digits and hyphens, beginning with a letter")
	}
	chapters, err := readChapters(file, markdown)
	if err != nil {
		return "", err
	}
	d := draft{id: id, owner: "unknown", now: now}
	var steps, verification []chapter
	part := ""
	for _, c := range chapters {
		name := strings.ToLower(c.title)
		switch {
		case c.level == 1 && d.title == "":
			d.title, d.meaning = c.title, c.prose()
			continue
		case c.level <= 2:
			part = name
		}
		switch {
		case strings.HasPrefix(name, "meaning"), strings.HasPrefix(name, "summary"):
			d.meaning = strings.TrimSpace(d.meaning + "\n\n" + c.prose())
		case strings.HasPrefix(name, "impact"):
			d.impact = c.prose()
		case strings.HasPrefix(part, "verif"):
			verification = append(verification, c)
		default:
			steps = append(steps, c)
		}
	}
	if len(withText(steps)) == 0 {
		steps = []chapter{{title: d.title, text: []string{d.meaning}}}
	}
	steps, verification = withText(steps), withText(verification)
	if len(steps) == 0 {
		return "", fault.Usage("%s: it has no heading with a text below it", file).WithHint("each heading becomes a step")
	}
	d.title, d.meaning, d.impact = cmp.Or(d.title, id), cmp.Or(d.meaning, "Not written yet."), cmp.Or(d.impact, "Not written yet.")
	d.eta = fmt.Sprintf("%dm", importedMinutes*len(steps))
	used := map[string]bool{}
	d.rest = "  steps:\n" + manualSteps(steps, used)
	if len(verification) == 0 {
		verification = []chapter{{title: "See that it is over", text: []string{"Not written yet."}}}
	}
	d.rest += "  verification:\n" + manualSteps(verification, used)
	return d.String(), nil
}

// importedMinutes is the ETA of a step of which nothing is known.
const importedMinutes = 5

func (c chapter) prose() string { return strings.TrimSpace(strings.Join(c.text, "\n")) }

func withText(all []chapter) []chapter {
	var kept []chapter
	for _, c := range all {
		if c.prose() != "" {
			kept = append(kept, c)
		}
	}
	return kept
}

func manualSteps(chapters []chapter, used map[string]bool) string {
	var b strings.Builder
	for _, c := range chapters {
		fmt.Fprintf(&b, "    - id: %s\n      title: %s\n      manual: %s\n", uniqueID(c.title, used), quote(c.title), block(c.prose(), 8))
		fmt.Fprintf(&b, "      eta: %dm\n", importedMinutes)
	}
	return b.String()
}

// Slug is an id made of a text.
func Slug(text string) string {
	slug := strings.Trim(regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(strings.ToLower(text), "-"), "-")
	slug = strings.TrimLeft(slug, "0123456789-")
	return strings.Trim(slug[:min(len(slug), 40)], "-")
}

func uniqueID(title string, used map[string]bool) string {
	slug := cmp.Or(Slug(title), "step")
	id := slug
	for n := 2; used[id]; n++ {
		id = fmt.Sprintf("%s-%d", slug, n)
	}
	used[id] = true
	return id
}

// readChapters reads headings with their texts. A heading within a block of code is none.
func readChapters(file, markdown string) ([]chapter, error) {
	chapters := []chapter{{level: 2, title: "Notes"}}
	fence, opened := "", 0
	n := 0
	for line := range strings.SplitSeq(strings.Map(plainRune, strings.ReplaceAll(strings.TrimPrefix(markdown, "\ufeff"), "\r\n", "\n")), "\n") {
		n++
		last := &chapters[len(chapters)-1]
		mark := fenceOf(line)
		switch {
		case fence != "" && mark != "" && strings.HasPrefix(mark, fence) && strings.TrimSpace(line) == mark:
			fence = ""
		case fence != "":
		case mark != "":
			fence, opened = mark, n
		case heading.MatchString(line):
			m := heading.FindStringSubmatch(line)
			chapters = append(chapters, chapter{level: len(m[1]), title: cmp.Or(m[2], "Step")})
			continue
		default:
			line = strings.ReplaceAll(line, "{{", "{ {") // prose that means no value of sbx
		}
		last.text = append(last.text, line)
	}
	if fence != "" {
		return nil, fault.Usage("%s:%d:1: a block of code begins here and is never closed", file, opened).WithHint("close it with %s: what follows would be taken for code", fence)
	}
	return chapters, nil
}

// plainRune replaces what a document cannot hold.
func plainRune(r rune) rune {
	if r == '\n' || r == '\t' || r != unicode.ReplacementChar && unicode.IsPrint(r) {
		return r
	}
	return ' '
}

// fenceOf is the mark of a line that opens or closes a block of code; "" = it is none.
func fenceOf(line string) string {
	text := strings.TrimLeft(line, " ")
	if len(line)-len(text) > 3 {
		return ""
	}
	for _, r := range []string{"`", "~"} {
		if n := len(text) - len(strings.TrimLeft(text, r)); n >= 3 {
			return text[:n]
		}
	}
	return ""
}
