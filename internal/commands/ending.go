package commands

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"sbx/internal/config"
	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/ops"
	"sbx/internal/output"
	"sbx/internal/sandbox"
	"sbx/internal/views"
)

// endRun is one run that ends sandboxes which the operator named.
type endRun struct {
	d       *Deps
	o       terminateOptions
	id      string
	by      string // who asks, for the provider's record
	config  *config.Config
	fleet   *fleet.Fleet
	targets []sandbox.Sandbox
	held    *ops.Leases // by tasks
	lost    []error     // words that were not found, each with its kind
	piped   bool        // references came from standard input: nobody has named what sbx keeps
}

func (d *Deps) newEndRun(verb string, o terminateOptions) *endRun {
	return &endRun{d: d, o: o, id: d.RunID(), by: d.ActsAs(verb)}
}

// prepare finds what the words mean. Words that are not found are kept for the
// end: one of them does not stop the rest.
func (r *endRun) prepare(ctx context.Context, args []string) error {
	words, err := r.d.words(ctx, args)
	if err != nil {
		return err
	}
	r.piped = slices.Contains(args, "-")
	if words, r.lost = wellFormed(words, args); len(words) == 0 {
		return errors.Join(r.lost...)
	}
	if r.config, err = r.d.Config(); err != nil {
		return err
	}
	for _, name := range r.o.production {
		if _, known := r.config.Find(name); !known {
			return fault.Usage("--production: there is no profile %q", name)
		}
	}
	if err := r.unattended(words); err != nil {
		return err
	}
	if r.fleet, err = r.d.Fleet(ctx); err != nil {
		return err
	}
	r.held = r.d.Leases(ctx)
	r.targets, err = r.fleet.Find(ctx, words, fleet.FindOptions{Destructive: true})
	if cause := ended(ctx, err); cause != nil {
		return cause
	}
	if fault.KindOf(err) == fault.KindUsage {
		return err
	}
	if err != nil && len(words) == 1 {
		_, err = r.d.WhoEnded(ctx, words[0], err)
	}
	if err != nil {
		r.lost = append(r.lost, mistakes(err)...)
	}
	return nil
}

// wellFormed leaves out what standard input brought that no reference can be, and says
// so of each: one odd id of an API must not keep the others. What was typed is left
// for Find, which refuses it.
func wellFormed(words, args []string) (left []string, odd []error) {
	for _, word := range words {
		if _, err := sandbox.ParseRef(word); err != nil && !slices.Contains(args, word) {
			odd = append(odd, fault.Usage("standard input: %w", err).WithHint("it was left out; `sbx ls -o json` shows it as it is"))
			continue
		}
		left = append(left, word)
	}
	return left, odd
}

// still keeps what is protected, by what is read just before the end.
func (r *endRun) still(s sandbox.Sandbox) (sandbox.Outcome, string) {
	if why := r.protected(s); why != "" {
		return sandbox.OutcomeSkipped, why
	}
	return "", ""
}

// keeps says that sbx itself keeps a sandbox which only a pipe has named.
func (r *endRun) keeps(s sandbox.Sandbox) string {
	if !r.piped || !s.KeptUntil.After(r.d.Now()) {
		return ""
	}
	return "protected: " + s.KeptReason() + "; named by hand it ends"
}

// protected says why a sandbox may not be ended; "" = it may.
func (r *endRun) protected(s sandbox.Sandbox) string {
	return cmp.Or(r.d.Protected(r.config, s), r.held.Holds(s, !r.piped), r.keeps(s))
}

// show ends the targets, unless refused says why not, and prints what became of
// each.
func (r *endRun) show(ctx context.Context, p *output.Printer, how fleet.EndOptions, refused error) error {
	spec := output.ListSpec[sandbox.Ending]{Schema: terminateSchema, Columns: views.EndingColumns()}
	if len(p.Columns) == 0 {
		spec.Line = views.EndingLine
	}
	list, err := output.NewList(p, spec)
	if err != nil {
		return err
	}
	list.Set("run_id", r.id)
	var endings []sandbox.Ending
	if cause := ended(ctx, refused); cause != nil {
		refused = cause
	}
	if refused != nil {
		list.Fail(refused)
	} else {
		for _, err := range r.lost {
			list.Fail(err)
		}
		endings = r.end(ctx, p, list, how)
		r.d.RecordEnds(ctx, p, r.fleet, endings)
	}
	list.Set("counts", fleet.Count(endings))
	if refused != nil {
		return list.Close()
	}
	return list.CloseAs(r.verdict(endings))
}

// end goes on when the reader of stdout has gone: what was begun is finished.
func (r *endRun) end(ctx context.Context, p *output.Printer, list *output.List[sandbox.Ending], how fleet.EndOptions) []sandbox.Ending {
	progress := p.Progress(fmt.Sprintf("ending %d sandboxes", len(r.targets)))
	defer progress.Done()
	var endings []sandbox.Ending
	for e := range r.fleet.Terminate(ctx, r.targets, how) {
		endings = append(endings, e)
		progress.Update(fmt.Sprintf("%d of %d", len(endings), len(r.targets)))
		views.AddEnding(list, e, true)
	}
	return endings
}

// verdict counts a word that was not found like a sandbox that did not end.
func (r *endRun) verdict(endings []sandbox.Ending) error {
	for _, err := range r.lost {
		endings = append(endings, sandbox.Ending{Outcome: sandbox.OutcomeFailed, Reason: err.Error(), Err: err})
	}
	return fleet.Verdict(endings, true)
}
