package commands

import (
	"bufio"
	"context"
	"fmt"
	"slices"
	"strings"

	"sbx/internal/config"
	"sbx/internal/fault"
	"sbx/internal/ops"
	"sbx/internal/output"
	"sbx/internal/safety"
)

// protection is what keeps sandboxes from being ended.
func (d *Deps) protection(c *config.Config, held *ops.Leases) safety.Protection {
	return safety.Protection{Now: d.Now, Configured: c.Protect.Covers, Leased: held.Holds}
}

// limits are those of the configuration; allowed are the production profiles that the
// operator has named.
func (d *Deps) limits(c *config.Config, allowed []string) (safety.Limits, error) {
	for _, name := range allowed {
		if _, known := c.Find(name); !known {
			return safety.Limits{}, fault.Usage("--production: there is no profile %q", name)
		}
	}
	return safety.Limits{MaxDelete: c.Limits.MaxDelete, MaxFraction: int(c.Limits.MaxFraction), Production: c.Production, Allowed: allowed}, nil
}

// attended says that somebody can be asked.
func (d *Deps) attended() bool { return d.Process.Stdin.TTY && d.Process.Stderr.TTY }

// unattended refuses many words without somebody to ask, before anything is
// called.
func (r *endRun) unattended(words []string) error {
	n := len(slices.Compact(slices.Sorted(slices.Values(words))))
	if r.o.dry || r.o.yes || n <= safety.MaxUnasked || r.d.attended() {
		return nil
	}
	return fault.New(fault.KindRefused, "%d sandboxes are more than %d, and nobody can be asked", n, safety.MaxUnasked).
		WithHint("look at the plan with --dry-run, then repeat with --yes")
}

// guards are the limits of this run. What a terminal could still allow by an
// answer is not ok before that.
func (r *endRun) guards() []safety.Guard {
	out := []safety.Guard{safety.UnaskedGuard(len(r.targets), r.o.yes, r.spread())}
	for _, name := range r.profiles() {
		chosen := r.chosenOf(name)
		if r.limits.IsProduction(name) {
			out = append(out, r.limits.ProductionGuard(name, safety.Unnamed(chosen), safety.Ending()))
		}
		if skew, _ := r.fleet.Skew(name); skew != 0 && slices.Contains(chosen, safety.ByRule) {
			g := safety.ClockGuard(name, skew)
			g.Advice += ", or name each by hand"
			out = append(out, g)
		}
	}
	return out
}

// profiles names those of the targets, in the order of their names.
func (r *endRun) profiles() []string {
	var names []string
	for _, s := range r.targets {
		names = append(names, s.Provider)
	}
	return slices.Compact(slices.Sorted(slices.Values(names)))
}

// chosenOf says how each target of a profile was chosen.
func (r *endRun) chosenOf(profile string) []safety.Choice {
	var chosen []safety.Choice
	for _, s := range r.targets {
		if s.Provider == profile {
			chosen = append(chosen, r.choice(s.Ref()))
		}
	}
	return chosen
}

// allow asks what a terminal can answer and refuses the whole run where a guard
// still says no.
func (r *endRun) allow(ctx context.Context, p *output.Printer) error {
	answers := newAnswers(r.d)
	for _, g := range r.guards() {
		if g.OK {
			continue
		}
		hint := g.Advice
		if g.Override != "" {
			hint = "repeat with " + g.Override
		}
		refusal := fault.New(fault.KindRefused, "%s", g.Objection).WithHint("%s", hint)
		if g.Answer == "" || !r.d.attended() {
			return refusal
		}
		p.Warn(refusal.Err.Error())
		answer, err := r.d.ask(ctx, answers, "type "+g.Answer+" to go on: ")
		if err != nil {
			return err
		}
		if answer != g.Answer {
			return refusal
		}
	}
	return nil
}

// spread counts the targets by profile: "local 2, prod 5".
func (r *endRun) spread() string {
	names := r.profiles()
	for i, name := range names {
		names[i] = fmt.Sprintf("%s %d", name, len(r.chosenOf(name)))
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
