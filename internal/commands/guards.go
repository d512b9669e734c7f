package commands

import (
	"bufio"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"sbx/internal/fault"
	"sbx/internal/output"
)

// maxUnasked is how many sandboxes are ended by name without a question or
// --yes (CLI.md, terminate).
const maxUnasked = 5

// guard is one limit on what a run may do, as the plan shows it.
type guard struct {
	Name  string `json:"name"`
	Limit int    `json:"limit"`
	Value int    `json:"value"`
	OK    bool   `json:"ok"`
}

// attended says that somebody can be asked.
func (d *Deps) attended() bool { return d.Process.Stdin.TTY && d.Process.Stderr.TTY }

// unattended refuses many words without somebody to ask, before anything is
// called.
func (r *endRun) unattended(words []string) error {
	n := len(slices.Compact(slices.Sorted(slices.Values(words))))
	if r.o.dry || r.o.yes || n <= maxUnasked || r.d.attended() {
		return nil
	}
	return fault.New(fault.KindRefused, "%d sandboxes are more than %d, and nobody can be asked", n, maxUnasked).
		WithHint("look at the plan with --dry-run, then repeat with --yes")
}

// guards are the limits of this run. What a terminal could still allow by an
// answer is not ok before that.
func (r *endRun) guards() []guard {
	n := len(r.targets)
	out := []guard{{Name: "unasked", Limit: maxUnasked, Value: n, OK: r.o.yes || n <= maxUnasked}}
	for _, name := range r.production() {
		n := r.of(name)
		out = append(out, guard{Name: "production " + name, Limit: 1, Value: n, OK: n <= 1 || slices.Contains(r.o.production, name)})
	}
	return out
}

// production names the production profiles among the targets.
func (r *endRun) production() []string {
	var names []string
	for _, name := range r.config.Production {
		if r.of(name) > 0 {
			names = append(names, name)
		}
	}
	return names
}

// of counts the targets of one profile.
func (r *endRun) of(profile string) int {
	n := 0
	for _, s := range r.targets {
		if s.Provider == profile {
			n++
		}
	}
	return n
}

// allow asks what a terminal can answer and refuses the whole run where a guard
// still says no.
func (r *endRun) allow(ctx context.Context, p *output.Printer) error {
	answers := newAnswers(r.d)
	for _, g := range r.guards() {
		if g.OK {
			continue
		}
		name, production := strings.CutPrefix(g.Name, "production ")
		word, hint := strconv.Itoa(g.Value), "repeat with --yes"
		if production {
			word, hint = name, "repeat with --production "+name
		}
		refusal := fault.New(fault.KindRefused, "%s", r.objection(g, name, production)).WithHint("%s", hint)
		if !r.d.attended() {
			return refusal
		}
		p.Warn(refusal.Err.Error())
		answer, err := r.d.ask(ctx, answers, "type "+word+" to go on: ")
		if err != nil {
			return err
		}
		if answer != word {
			return refusal
		}
	}
	return nil
}

func (r *endRun) objection(g guard, name string, production bool) string {
	if production {
		return fmt.Sprintf("%d sandboxes of %s, which is production, would end", g.Value, name)
	}
	return fmt.Sprintf("%d sandboxes would end: %s", g.Value, r.spread())
}

// spread counts the targets by profile: "local 2, prod 5".
func (r *endRun) spread() string {
	var names []string
	for _, s := range r.targets {
		if !slices.Contains(names, s.Provider) {
			names = append(names, s.Provider)
		}
	}
	slices.Sort(names)
	for i, name := range names {
		names[i] = fmt.Sprintf("%s %d", name, r.of(name))
	}
	return strings.Join(names, ", ")
}

// newAnswers reads what is typed, a line at a time; one reader serves a whole run.
func newAnswers(d *Deps) *bufio.Reader { return bufio.NewReader(d.Process.Stdin) }

// ask puts a question to the terminal and waits for a line or the end of ctx. An
// input that ends has the empty answer.
func (d *Deps) ask(ctx context.Context, answers *bufio.Reader, question string) (string, error) {
	fmt.Fprint(d.Process.Stderr, question)
	line := make(chan string, 1)
	go func() {
		text, _ := answers.ReadString('\n') // an end without an answer is the empty one
		line <- strings.TrimSpace(text)
	}()
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case text := <-line:
		return text, nil
	}
}
