package end

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"sbx/internal/cleanup"
	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/notify"
	"sbx/internal/ops"
	"sbx/internal/runs"
	"sbx/internal/sandbox"
)

// runMessage is the message to people about a run that did not go well: how it went, which
// sandboxes of which providers are left and why they were to end, and what to type next.
func (r *cleanupRun) runMessage(what notify.Kind, err error) notify.Message {
	counts := fleet.Count(r.endings)
	figures := map[string]float64{"selected": float64(len(r.survey.Selected)), "exit code": float64(fault.ExitCode(err))}
	for _, o := range sandbox.Outcomes() {
		if n := counts.Of(o); n > 0 {
			figures[string(o)] = float64(n)
		}
	}
	m := notify.Message{
		Verb: runs.VerbCleanup, RunID: r.id, Host: r.env.Process.Host, Kind: what, Key: r.messageKey(),
		Text: r.runSummary(err), Figures: figures, At: r.env.Now(), Items: r.messageItems(), Causes: causesOf(r.survey.Selected),
	}
	m.Providers = r.concernedProviders(m.Items)
	m.Next = r.nextCommands(what, m.Items)
	return m
}

// messageKey names the trouble that messages about runs are about: of the layer, else of the rule,
// at the profiles of the run. A good run elsewhere, or by another rule, does not end it.
func (r *cleanupRun) messageKey() string {
	rule := r.rule
	rule.Unowned = false // a resume sets it
	return episodeKey(runs.VerbCleanup+" "+cmp.Or(r.provenLayer(), rule.Key()), r.profiles())
}

// profiles names the profiles that the run is about, also where none could be opened.
func (r *cleanupRun) profiles() []string {
	if r.req.Resume != "" && r.fleet != nil {
		return r.fleet.Names()
	}
	var names []string
	for _, p := range r.world.Profiles {
		names = append(names, p.Name)
	}
	return names
}

// episodeKey is the key of what goes on at some profiles until it is over.
func episodeKey(what string, profiles []string) string {
	return what + " at " + strings.Join(slices.Sorted(slices.Values(profiles)), ",")
}

// messageItems are the sandboxes that were not seen to end; where nothing was tried, those that
// would end.
func (r *cleanupRun) messageItems() []notify.Item {
	judged := map[sandbox.Ref]cleanup.Judgement{}
	for _, j := range r.survey.Selected {
		judged[j.Sandbox.Ref()] = j
	}
	var items []notify.Item
	for _, e := range r.endings {
		if fleet.Verdict([]sandbox.Ending{e}, false) != nil {
			j := judged[e.Ref]
			items = append(
				items, notify.Item{Ref: e.Ref.String(), Task: j.Sandbox.TaskID, Cause: ops.CauseWord(j.Verdict), Outcome: string(e.Outcome), Reason: e.Reason},
			)
		}
	}
	if len(r.endings) > 0 {
		return items
	}
	for _, j := range r.survey.Selected {
		items = append(items, messageItem(j))
	}
	return items
}

// messageItem is a sandbox for which nothing was tried.
func messageItem(j cleanup.Judgement) notify.Item {
	return notify.Item{Ref: j.Sandbox.Ref().String(), Task: j.Sandbox.TaskID, Cause: ops.CauseWord(j.Verdict), Reason: j.Reason}
}

func causesOf(judged []cleanup.Judgement) map[string]int {
	causes := map[string]int{}
	for _, j := range judged {
		if word := ops.CauseWord(j.Verdict); word != "" {
			causes[word]++
		}
	}
	return causes
}

// concernedProviders are the profiles of the items, and those that could not be seen whole.
func (r *cleanupRun) concernedProviders(items []notify.Item) []string {
	var names []string
	for _, i := range items {
		profile, _, _ := strings.Cut(i.Ref, "/")
		names = append(names, profile)
	}
	names = append(names, r.failedProviders()...)
	slices.Sort(names)
	return slices.Compact(names)
}

func (r *cleanupRun) failedProviders() []string {
	var names []string
	for _, err := range r.survey.Errs() {
		if f, ok := errors.AsType[*fault.Error](err); ok && f.Provider != "" {
			names = append(names, f.Provider)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// nextCommands are what a person types next: what the run did, or would do; one of the sandboxes
// that are left; the providers that did not answer.
func (r *cleanupRun) nextCommands(what notify.Kind, items []notify.Item) []string {
	program := r.env.Process.Name()
	var next []string
	switch {
	case r.recorded:
		next = append(next, program+" cleanup show "+r.id)
	case what == notify.KindRefused && r.rule.Selector.Stuck:
		next = append(next, program+" cleanup --stuck")
	}
	if len(items) > 0 {
		next = append(next, program+" inspect "+items[0].Ref)
	}
	for _, name := range r.failedProviders() {
		next = append(next, program+" doctor --provider "+name)
	}
	if len(next) == 0 {
		next = append(next, program+" cleanup runs")
	}
	return next
}

func (r *cleanupRun) runSummary(err error) string {
	parts := []string{fmt.Sprintf(
		"%s: %d of %d sandboxes selected; %s", r.id, len(r.survey.Selected), len(r.survey.Selected)+len(r.survey.Kept),
		ops.CountsText(fleet.Count(r.endings)),
	)}
	if err != nil {
		parts = append(parts, err.Error())
	}
	if text := r.unownedText(); text != "" {
		parts = append(parts, text)
	}
	for _, e := range r.survey.Errs() {
		parts = append(parts, e.Error())
	}
	return strings.Join(parts, "\n")
}
