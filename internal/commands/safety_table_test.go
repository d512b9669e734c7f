package commands

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/safety"
	"sbx/internal/sandbox"
	"sbx/internal/task"
)

// arm makes a rule apply to the sandboxes of a scene.
type arm struct {
	name   string
	before func(*scene)          // before the verb is prepared; nil = nothing
	since  func(s *scene, n int) // since then; n is the last read before the request, of a run without the arm; nil = nothing
}

// fromRead edits what the provider says of the sandboxes of a scene, from a read on.
func (s *scene) fromRead(n int, edit func(*sandbox.Sandbox) error) {
	s.p.edit = func(read int, box *sandbox.Sandbox) error {
		if read < n || !strings.HasPrefix(box.ID, "box") {
			return nil
		}
		return edit(box)
	}
}

func (s *scene) label(key, value string) { s.labelFrom(0, key, value) }

func (s *scene) labelFrom(read int, key, value string) {
	s.fromRead(read, func(box *sandbox.Sandbox) error {
		labels := map[string]string{key: value}
		for k, v := range box.Labels {
			if k != key {
				labels[k] = v
			}
		}
		box.Labels = labels
		return nil
	})
}

// arms are the ways in which each rule comes to apply.
func arms() map[safety.Rule][]arm {
	more := func(n int) func(*scene) { return func(s *scene) { s.boxes = n } }
	configured := func(yaml string) func(*scene, int) { return func(s *scene, _ int) { s.config = yaml } }
	return map[safety.Rule][]arm{
		safety.RuleProtected: {
			{name: "its label", since: func(s *scene, _ int) { s.label(sandbox.LabelKeep, "true") }},
			{name: "the configuration", since: configured("protect: {ids: [box00001]}\n")},
		},
		safety.RuleLeased: {{name: "a task at work", since: func(s *scene, _ int) {
			s.task("t-work", "box00001", func(*task.Task) {})
			if s.verb == safety.VerbKept { // the list has given it to that task
				s.claimed = "t-work"
			}
		}}},
		safety.RuleKept: {
			{name: "its label", since: func(s *scene, _ int) {
				if s.kept = s.verb == safety.VerbTask || s.verb == safety.VerbKept; !s.kept { // these know it by themselves
					s.label(sandbox.LabelKeptUntil, noon.Add(time.Hour).Format(time.RFC3339))
				}
			}},
			{name: "the list of what tasks keep", since: func(s *scene, _ int) {
				if s.kept = s.verb == safety.VerbTask || s.verb == safety.VerbKept; s.kept {
					return
				}
				list := task.KeepList{Store: s.b.kept(atNoon)}
				require.NoError(s.t, list.Keep(s.t.Context(), task.Kept{Ref: sandbox.Ref{Provider: "prod", ID: "box00001"}, ExpiresAt: noon.Add(time.Hour)}, "t-kept"))
			}},
		},
		safety.RuleOwned: {{name: "no label of ours", since: func(s *scene, _ int) { s.label("team", "strangers") }}},
		safety.RuleAtWork: {
			{name: "it works", since: func(s *scene, _ int) {
				s.fromRead(0, func(box *sandbox.Sandbox) error {
					box.Activity, box.LastActivityAt = sandbox.True, noon
					return nil
				})
			}},
		},
		safety.RuleConfirmed:  {{name: "no --yes", before: more(6), since: func(s *scene, _ int) { s.refused = true }}},
		safety.RuleProduction: {{name: "no --production", since: func(s *scene, _ int) { s.config, s.word = "production: [prod]\n", s.verb != safety.VerbTerminatePiped }}},
		safety.RuleMaxDelete:  {{name: "one too many", before: more(2), since: configured("limits: {max_delete: 1}\n")}},
		safety.RuleFraction:   {{name: "a tenth and more", before: more(6), since: configured("limits: {max_fraction: 10%}\n")}},
		safety.RuleClock: {
			{name: "ahead", since: func(s *scene, _ int) { s.p.SetSkew(3 * time.Minute) }},
			{name: "behind", since: func(s *scene, _ int) { s.p.SetSkew(-3 * time.Minute) }},
		},
		safety.RuleListed: {{name: "it breaks off", since: func(s *scene, _ int) { s.p.incomplete, s.word = true, true }}},
		safety.RuleRecheck: {{name: "since the read before", since: func(s *scene, n int) {
			if s.verb == safety.VerbDrill { // which no label keeps
				s.fromRead(n, func(box *sandbox.Sandbox) error { box.CreatedAt = noon; return nil })
				return
			}
			s.labelFrom(n, sandbox.LabelKeep, "true")
		}}},
		safety.RuleReplaced: {{name: "made a second later", since: func(s *scene, n int) {
			s.fromRead(n, func(box *sandbox.Sandbox) error { box.CreatedAt = box.CreatedAt.Add(time.Second); return nil })
		}}},
		safety.RuleReadable: {{name: "since the read before", since: func(s *scene, n int) {
			s.fromRead(n, func(*sandbox.Sandbox) error {
				if s.p.wasAsked() { // the end itself can be seen
					return nil
				}
				return fault.New(fault.KindUnavailable, "%w", providers.ErrUnreadable)
			})
		}}},
	}
}

// TestWhichRuleBindsWhichVerb proves each field of the table of safety by running the
// verb: without the rule's reason it ends the sandboxes, with it it does so only where
// the table says that the rule does not bind. What the table calls not applicable has no
// such run. It writes docs/SAFETY.md's table with -update.
func TestWhichRuleBindsWhichVerb(t *testing.T) {
	t.Parallel()
	for _, verb := range safety.Verbs() {
		t.Run(string(verb), func(t *testing.T) {
			t.Parallel()
			plain := play(t, verb, nil, nil)
			for _, rule := range safety.Rules() {
				for _, a := range arms()[rule] {
					cell := safety.Binding(verb, rule)
					if cell.Kind == safety.NotApplicable {
						continue
					}
					t.Run(string(rule)+", "+a.name, func(t *testing.T) {
						t.Parallel()
						control := plain
						if a.before != nil {
							control = play(t, verb, a.before, nil)
						}
						require.Equal(t, control.boxes, control.p.asked, "without the rule's reason it ends them")
						armed := play(t, verb, a.before, func(s *scene) { a.since(s, control.p.before-1) })
						if cell.Binds() {
							assert.Zero(t, armed.p.asked, "the rule binds, and nothing is asked")
						} else {
							assert.Equal(t, armed.boxes, armed.p.asked, "the rule does not bind: %s", cell.Why)
						}
					})
				}
			}
		})
	}
}

func play(t *testing.T, verb safety.Verb, before, since func(*scene)) *scene {
	t.Helper()
	s := &scene{t: t, verb: verb, boxes: 1}
	if before != nil {
		before(s)
	}
	s.play(since)
	return s
}

// TestEveryRuleHasAnArm: a rule that nothing makes apply is not proved.
func TestEveryRuleHasAnArm(t *testing.T) {
	t.Parallel()
	for _, r := range safety.Rules() {
		assert.NotEmpty(t, arms()[r], r)
	}
}

const (
	tableBegins = "<!-- begin: rule x verb, written by `make docs` -->"
	tableEnds   = "<!-- end: rule x verb -->"
)

// TestGeneratedTableOfRules compares the table of docs/SAFETY.md with what the test above
// proves.
func TestGeneratedTableOfRules(t *testing.T) {
	t.Parallel()
	file := filepath.Join("..", "..", "docs", "SAFETY.md")
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	head, rest, found := strings.Cut(string(raw), tableBegins)
	_, tail, ends := strings.Cut(rest, tableEnds)
	require.True(t, found && ends, "docs/SAFETY.md has no place for the table")
	want := head + tableBegins + "\n\n" + tableOfRules() + "\n" + tableEnds + tail
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(want), 0o600))
		return
	}
	assert.Equal(t, want, string(raw), "run `make docs`")
}

// tableOfRules is the table in Markdown, with the remarks below it.
func tableOfRules() string {
	var b strings.Builder
	b.WriteString("| rule |")
	for _, v := range safety.Verbs() {
		fmt.Fprintf(&b, " %s |", v)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(safety.Verbs())) + "\n")
	var remarks []string
	number := map[string]int{}
	for _, r := range safety.Rules() {
		fmt.Fprintf(&b, "| **%s** |", r)
		for _, v := range safety.Verbs() {
			c := safety.Binding(v, r)
			if c.Why == "" {
				fmt.Fprintf(&b, " %s |", c.Kind)
				continue
			}
			if number[c.Why] == 0 {
				remarks = append(remarks, c.Why)
				number[c.Why] = len(remarks)
			}
			fmt.Fprintf(&b, " %s (%d) |", c.Kind, number[c.Why])
		}
		b.WriteString("\n")
	}
	b.WriteString("\n")
	for _, r := range safety.Rules() {
		fmt.Fprintf(&b, "- **%s**: %s\n", r, r.Describe())
	}
	b.WriteString("\n")
	for i, why := range remarks {
		fmt.Fprintf(&b, "%d. %s\n", i+1, why)
	}
	return b.String()
}
