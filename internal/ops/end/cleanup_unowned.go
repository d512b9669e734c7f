package end

import (
	"fmt"
	"maps"
	"slices"

	"sbx/internal/cleanup"
	"sbx/internal/cron"
	"sbx/internal/fault"
	"sbx/internal/ops"
	"sbx/internal/safety"
	"sbx/internal/sandbox"
)

// NoneOwned says how many the rule finds where none of them would end since nobody owns them, else 0, with the two
// ways on: the typed line that ends them once ("" = it is not known), and the one that makes them the operator's.
func (r *CleanupResult) NoneOwned() (found int, once, own string) {
	found, own = r.unowned()
	if len(r.Survey.Selected) > 0 || found == 0 {
		return 0, "", ""
	}
	if line := r.run.req.Line; len(line) > 0 {
		flags := []string{"--unowned"}
		if found > r.run.world.Limits.MaxDelete {
			flags = append(flags, fmt.Sprintf("--max-delete %d", found))
		}
		once = safety.RetryLine(line, flags)
	}
	return found, once, "`" + own + "`"
}

// unowned is how many stay since nobody owns them, and the command that makes them the operator's.
func (r *CleanupResult) unowned() (found int, own string) {
	unowned := r.run.unowned()
	for _, n := range unowned {
		found += n
	}
	if found > 0 {
		own = r.run.env.Process.Name() + " config own" + cron.ProviderFlags(slices.Sorted(maps.Keys(unowned))) + " --all"
	}
	return found, own
}

// unowned counts by profile what the rule would end and only a missing owner keeps. What a resume was
// told by its journal may have been decided since.
func (r *cleanupRun) unowned() map[string]int {
	counts := r.survey.Unowned()
	for _, p := range r.world.Profiles {
		if !p.OwnerUnset {
			delete(counts, p.Name)
		}
	}
	return counts
}

// unownedError is the error of an unattended run that is good but for what only a missing owner has kept
// from it: a cron line that ends nothing must not succeed. Nil = somebody watches, or nothing was
// kept so, or the run has an error of its own.
func (r *cleanupRun) unownedError(verdict error) error {
	if verdict != nil || !r.req.Unattended {
		return nil //nolint:nilerr // the caller has it
	}
	text := r.unownedCounts()
	if text == "" {
		return nil
	}
	return fault.New(fault.KindRefused, "%s", text).WithHint("%s", r.env.OwnHint(slices.Sorted(maps.Keys(r.unowned()))))
}

// UnownedText says which sandboxes stay because nobody owns them, and what to type; "" = none.
func (r *CleanupResult) UnownedText() string { return r.run.unownedText() }

func (r *cleanupRun) unownedText() string {
	text := r.unownedCounts()
	if text == "" {
		return ""
	}
	return text + "; " + r.env.OwnHint(slices.Sorted(maps.Keys(r.unowned())))
}

// mostUnownedNames is how many sandboxes that nobody owns are named.
const mostUnownedNames = 10

// unownedCounts says how many sandboxes of which profiles stay because nobody owns them, and names them,
// as far as the run has seen them itself; "" = none.
func (r *cleanupRun) unownedCounts() string {
	counts, total := r.unowned(), 0
	for _, n := range counts {
		total += n
	}
	if total == 0 {
		return ""
	}
	one, many := "sandbox that the rule would terminate", "sandboxes that the rule would terminate"
	if r.rule.Selector.Stuck {
		one, many = "stuck sandbox", "stuck sandboxes"
	}
	text := fmt.Sprintf("%d %s were skipped because nobody owns them (%s)", total, many, ops.JoinCounts(counts))
	if total == 1 {
		text = fmt.Sprintf("1 %s was skipped because nobody owns it", one)
	}
	var names []string
	for _, j := range r.survey.Kept {
		if j.KeepReason == cleanup.KeepNotOwned && counts[j.Sandbox.Provider] > 0 {
			names = append(names, j.Sandbox.Ref().String())
		}
	}
	if len(names) > 0 {
		text += ": " + sandbox.FormatFirst(names, mostUnownedNames)
	}
	return text
}
