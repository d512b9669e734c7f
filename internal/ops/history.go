package ops

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"sbx/internal/cleanup"
	"sbx/internal/fault"
	"sbx/internal/journal"
	"sbx/internal/task"
)

// Histories reads the newest runs of a verb, at most limit of them; 0 = all, "" = any
// verb. One that cannot be read is an error beside the others.
func (e *Env) Histories(ctx context.Context, verb string, limit int) ([]cleanup.History, []error) {
	return e.histories(ctx, verb, limit, func(cleanup.History) bool { return false })
}

func (e *Env) histories(ctx context.Context, verb string, limit int, enough func(cleanup.History) bool) ([]cleanup.History, []error) {
	list, errs := e.ownHistories(verb, limit, enough)
	shared, err := e.sharedRuns(ctx, limit)
	if err != nil {
		errs = append(errs, err)
	}
	for _, run := range shared {
		here := slices.ContainsFunc(list, func(h cleanup.History) bool { return h.RunID == run.ID })
		if !here && (verb == "" || run.Verb == verb) {
			list = append(list, historyOfShared(run))
		}
	}
	slices.SortStableFunc(list, func(a, b cleanup.History) int { return b.StartedAt.Compare(a.StartedAt) })
	if limit > 0 && len(list) > limit {
		list = list[:limit]
	}
	return list, errs
}

// CleanupRuns are the newest cleanup runs on record, the newest first, as far as they can
// be read.
func (e *Env) CleanupRuns(ctx context.Context, limit int) []cleanup.History {
	runs, _ := e.Histories(ctx, VerbCleanup, limit) // what cannot be read is not known; `cleanup runs` says why
	return runs
}

// RunsSinceSuccess are the cleanup runs down to the last in which each of the profiles was in order, at
// most StatusRuns, the newest first: the older journals, which may be large, are not read.
func (e *Env) RunsSinceSuccess(ctx context.Context, profiles []string) []cleanup.History {
	open := slices.Clone(profiles)
	runs, _ := e.histories(ctx, VerbCleanup, StatusRuns, func(h cleanup.History) bool { // as above
		open = slices.DeleteFunc(open, func(profile string) bool {
			return h.End != nil && h.Broken == "" && slices.Contains(h.End.Succeeded, profile)
		})
		return len(open) == 0
	})
	return runs
}

// ownHistories reads the journals of this machine, the newest first, until enough says that no older one is wanted.
func (e *Env) ownHistories(verb string, limit int, enough func(cleanup.History) bool) ([]cleanup.History, []error) {
	disk, err := e.Journals()
	if err != nil {
		return nil, []error{err}
	}
	runs, err := journal.Runs(disk)
	if err != nil {
		return nil, []error{err}
	}
	slices.Reverse(runs)
	var list []cleanup.History
	var errs []error
	var logs []journal.Log
	for _, run := range runs {
		if limit > 0 && len(list) == limit {
			break
		}
		h, log, err := cleanup.ScanRun(disk, run)
		logs = append(logs, log)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		errs = append(errs, e.historyErrors(h, log)...)
		if verb == "" || h.Begin.Verb == verb || h.Begin.Verb == "" && len(h.Unreadable) > 0 { // its beginning may be what cannot be read
			list = append(list, h)
			if enough(h) {
				break
			}
		}
	}
	for _, run := range journal.MissingPredecessor(logs) {
		errs = append(errs, missingJournalError(run, e.Process.Name()))
	}
	return list, errs
}

// historyErrors are why a journal cannot be trusted or read as a whole.
func (e *Env) historyErrors(h cleanup.History, log journal.Log) (errs []error) {
	if log.Count == 0 && !log.Truncated && log.Broken == "" {
		errs = append(errs, fault.New(fault.KindFound, "the journal of %s is empty: the run was interrupted before its first line, or somebody emptied it", h.RunID).
			WithHint("a run that is just starting has none yet; `%s cleanup runs` lists the runs", e.Process.Name()))
	}
	if h.Broken != "" {
		errs = append(errs, cleanup.BrokenError(h.RunID, h.Broken))
	}
	if err := h.Unreadable.Error(h.RunID); err != nil {
		errs = append(errs, err)
	}
	return errs
}

// RunIDs names the runs of this machine, the newest first, as far as they can be listed.
func (e *Env) RunIDs() []string {
	disk, err := e.Journals()
	if err != nil {
		return nil
	}
	runs, _ := journal.Runs(disk)
	slices.Reverse(runs)
	return runs
}

// FindRun reads the run that a word means: of this machine, else of another host.
func (e *Env) FindRun(ctx context.Context, word string) (cleanup.History, error) {
	var found []func() (cleanup.History, error)
	var names []string
	match := func(name string, read func() (cleanup.History, error)) {
		if !slices.Contains(names, name) {
			names, found = append(names, name), append(found, read)
		}
	}
	if err := e.ownRuns(word, match); err != nil {
		return cleanup.History{}, err
	}
	shared, sharedErr := e.sharedRuns(ctx, 0)
	for _, run := range shared {
		if meansRun(word, run.ID) {
			match(run.ID, func() (cleanup.History, error) { return historyOfShared(run), nil })
		}
	}
	if word == lastRun && len(names) > 0 {
		newest := slices.Index(names, slices.Max(names)) // a name begins with its time
		return found[newest]()
	}
	if i := slices.Index(names, word); i >= 0 {
		return found[i]()
	}
	switch len(names) {
	case 1:
		return found[0]()
	case 0:
		if sharedErr != nil {
			return cleanup.History{}, sharedErr
		}
		return cleanup.History{}, fault.New(fault.KindNotFound, "no run is called %q", word).WithHint("`%s cleanup runs` lists the bulk runs", e.Process.Name())
	}
	return cleanup.History{}, fault.Usage("%q is a prefix of %d runs", word, len(names)).WithHint("%s", fewOf(names))
}

// ownRuns offers the runs of this machine that a word may mean. `last` means bulk runs
// alone.
func (e *Env) ownRuns(word string, match func(string, func() (cleanup.History, error))) error {
	disks := []func() (journal.Disk, error){e.Journals}
	if word != lastRun {
		disks = append(disks, e.Endings)
	}
	for _, open := range disks {
		disk, err := open()
		if err != nil {
			return err
		}
		runs, err := journal.Runs(disk)
		if err != nil {
			return err
		}
		for _, run := range runs {
			if meansRun(word, run) {
				match(run, func() (cleanup.History, error) { return cleanup.ReadRun(disk, run) })
			}
		}
	}
	return nil
}

// lastRun names the newest bulk run.
const lastRun = "last"

// minRunPrefix is how much of a run's name must be given: less is hardly meant.
const minRunPrefix = 4

func meansRun(word, run string) bool {
	return word == lastRun || word == run || len(word) >= minRunPrefix && strings.HasPrefix(run, word)
}

func fewOf(names []string) string {
	const most = 5
	if len(names) > most {
		return strings.Join(names[:most], ", ") + ", ..."
	}
	return strings.Join(names, ", ")
}

// FormatFigure writes a figure of verify: a share in percent, all else as a whole number.
func FormatFigure(v float64, unit task.Unit) string {
	if unit == task.UnitShare {
		return fmt.Sprintf("%.1f%%", v*100)
	}
	return fmt.Sprintf("%.0f", v)
}
