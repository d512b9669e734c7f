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

// NoneOwned counts what the rule finds where it would end none of that, since nobody owns them; else it is 0. OnceLine is
// the typed line that ends them this once ("" = it is not known), ownLine the one that makes them the operator's.
func (r *CleanupResult) NoneOwned() (found int, onceLine, ownLine string) {
	found, own := r.unownedTotal()
	if len(r.Survey.Selected) > 0 || found == 0 {
		return 0, "", ""
	}
	if line := r.run.req.Line; len(line) > 0 {
		flags := []string{"--unowned"}
		if found > r.run.world.Limits.MaxDelete {
			flags = append(flags, fmt.Sprintf("--max-delete %d", found))
		}
		onceLine = safety.RetryLine(line, flags)
	}
	return found, onceLine, "`" + own + "`"
}

// unownedTotal is how many stay since nobody owns them, and the command that makes them the operator's.
func (r *CleanupResult) unownedTotal() (found int, own string) {
	unowned := r.run.countUnowned()
	for _, n := range unowned {
		found += n
	}
	if found > 0 {
		own = r.run.env.Process.Name() + " config own" + cron.ProviderFlags(slices.Sorted(maps.Keys(unowned))) + " --all"
	}
	return found, own
}

// countUnowned counts by profile what the rule would end and only a missing owner keeps. Profiles whose ownership was
// configured since do not count: the counts of a resumed run come from its journal.
func (r *cleanupRun) countUnowned() map[string]int {
	counts := r.survey.Unowned()
	for _, p := range r.world.Profiles {
		if !p.OwnerUnset {
			delete(counts, p.Name)
		}
	}
	return counts
}

// unownedError is the error of an unattended run without another error from which only a missing owner has kept
// sandboxes: a cron line that ends nothing must not succeed. Nil = somebody watches, or nothing was kept so.
func (r *cleanupRun) unownedError(verdict error) error {
	if verdict != nil || !r.req.Unattended {
		return nil //nolint:nilerr // the caller has it
	}
	text := r.describeUnowned()
	if text == "" {
		return nil
	}
	return fault.New(fault.KindRefused, "%s", text).WithHint("%s", r.env.OwnHint(slices.Sorted(maps.Keys(r.countUnowned()))))
}

// UnownedText says which sandboxes stay because nobody owns them, and what to type; "" = none.
func (r *CleanupResult) UnownedText() string { return r.run.unownedText() }

func (r *cleanupRun) unownedText() string {
	text := r.describeUnowned()
	if text == "" {
		return ""
	}
	return text + "; " + r.env.OwnHint(slices.Sorted(maps.Keys(r.countUnowned())))
}

// mostUnownedNames is how many sandboxes that nobody owns are named.
const mostUnownedNames = 10

// describeUnowned says how many sandboxes of which profiles stay because nobody owns them, and names them,
// as far as the run has seen them itself; "" = none.
func (r *cleanupRun) describeUnowned() string {
	counts, total := r.countUnowned(), 0
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
