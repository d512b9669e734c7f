package runs

import (
	"context"
	"iter"
	"slices"
	"strings"
	"time"

	"sbx/internal/fault"
	"sbx/internal/journal"
	"sbx/internal/store"
)

// Records are where runs are written down: journals of this machine, and a store that hosts may share.
type Records struct {
	// Bulk has the runs by a rule, Single all other ends: those of terminate, tasks and drills. They are
	// apart, so that many tasks displace no run that a check has to see.
	Bulk, Single func() (journal.Disk, error)
	// Shared opens the store that hosts share; a nil store = they share none.
	Shared func() (store.Store, error)
	// ShareLimit is what a slow store may cost a run.
	ShareLimit time.Duration
	Now        func() time.Time
	Program    string // for hints
}

// All reads the newest runs of a verb, at most limit of them; 0 = all, "" = any verb. One that cannot be
// read is an error beside the others.
func (r Records) All(ctx context.Context, verb string, limit int) ([]History, []error) {
	return r.readUntil(ctx, verb, limit, func(History) bool { return false })
}

// SinceSuccess are the runs of a verb down to the last in which each of the profiles was in order, at
// most limit, the newest first: the older journals, which may be large, are not read. What cannot be read
// is left out.
func (r Records) SinceSuccess(ctx context.Context, verb string, profiles []string, limit int) []History {
	open := slices.Clone(profiles)
	list, _ := r.readUntil(ctx, verb, limit, func(h History) bool { // as it says
		open = slices.DeleteFunc(open, func(profile string) bool {
			return h.Conclusion != nil && h.Broken == "" && slices.Contains(h.Conclusion.Succeeded, profile)
		})
		return len(open) == 0
	})
	return list
}

// readUntil reads the runs of this machine, until enough says that no older one is wanted, and adds those of other hosts.
func (r Records) readUntil(ctx context.Context, verb string, limit int, enough func(History) bool) ([]History, []error) {
	list, errs := r.readOwn(verb, limit, enough)
	shared, err := r.SharedRuns(ctx, limit)
	if err != nil {
		errs = append(errs, err)
	}
	for _, run := range shared {
		here := slices.ContainsFunc(list, func(h History) bool { return h.RunID == run.ID })
		if !here && (verb == "" || run.Verb == verb) {
			list = append(list, historyOfShared(run))
		}
	}
	slices.SortStableFunc(list, func(a, b History) int { return b.StartedAt.Compare(a.StartedAt) })
	if limit > 0 && len(list) > limit {
		list = list[:limit]
	}
	return list, errs
}

// readOwn reads the journals of this machine, the newest first, until enough says that no older one is wanted.
func (r Records) readOwn(verb string, limit int, enough func(History) bool) ([]History, []error) {
	disk, names, err := runsOf(r.Bulk)
	if err != nil {
		return nil, []error{err}
	}
	var list []History
	var errs []error
	var logs []journal.Log
	for _, run := range slices.Backward(names) {
		if limit > 0 && len(list) == limit {
			break
		}
		h, log, err := ScanRun(disk, run)
		logs = append(logs, log)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		errs = append(errs, r.mistakes(h, log)...)
		if verb == "" || h.Begin.Verb == verb || h.Begin.Verb == "" && len(h.Unreadable) > 0 { // its beginning may be what cannot be read
			list = append(list, h)
			if enough(h) {
				break
			}
		}
	}
	return list, append(errs, r.Missing(logs)...)
}

// mistakes are why a journal cannot be trusted or read as a whole.
func (r Records) mistakes(h History, log journal.Log) (errs []error) {
	if log.Count == 0 && !log.Truncated && log.Broken == "" {
		errs = append(errs, fault.New(fault.KindFound, "the journal of %s is empty: the run was interrupted before its first line, or somebody emptied it", h.RunID).
			WithHint("a run that is just starting has none yet; `%s cleanup runs` lists the runs", r.Program))
	}
	if h.Broken != "" {
		errs = append(errs, BrokenError(h.RunID, h.Broken))
	}
	if err := h.Unreadable.Error(h.RunID); err != nil {
		errs = append(errs, err)
	}
	return errs
}

// Missing are errors about journals that should stand before those that were read.
func (r Records) Missing(logs []journal.Log) (errs []error) {
	for _, run := range journal.MissingPredecessor(logs) {
		errs = append(errs, fault.New(fault.KindFound, "the journal of the run before %s is missing", run).
			WithHint("somebody removed it; `%s audit` lists what the others tell", r.Program))
	}
	return errs
}

// runsOf names the runs of a folder, the oldest first.
func runsOf(open func() (journal.Disk, error)) (disk journal.Disk, names []string, err error) { //nolint:ireturn // as it was opened
	if disk, err = open(); err != nil {
		return nil, nil, err
	}
	names, err = journal.Runs(disk)
	return disk, names, err
}

// Folders are the journals of both kinds of runs.
func (r Records) Folders() []func() (journal.Disk, error) {
	return []func() (journal.Disk, error){r.Bulk, r.Single}
}

// IDs names the runs by a rule of this machine, the newest first, as far as they can be listed.
func (r Records) IDs() []string {
	_, names, _ := runsOf(r.Bulk)
	slices.Reverse(names)
	return names
}

// About are the runs of this machine in whose journals a text occurs, the newest first. What cannot be read is
// left out.
func (r Records) About(ctx context.Context, text string) iter.Seq[History] {
	type kept struct {
		disk journal.Disk
		run  string
	}
	var all []kept
	for _, open := range r.Folders() {
		disk, names, _ := runsOf(open)
		for _, run := range names {
			all = append(all, kept{disk, run})
		}
	}
	slices.SortFunc(all, func(a, b kept) int { return strings.Compare(b.run, a.run) }) // a name begins with its time
	return func(yield func(History) bool) {
		for _, k := range all {
			if ctx.Err() != nil {
				return
			}
			if there, err := journal.ContainsText(k.disk, k.run, text); err != nil || !there {
				continue
			}
			if h, err := ReadRun(k.disk, k.run); err == nil && !yield(h) {
				return
			}
		}
	}
}

// lastRun names the newest run by a rule.
const lastRun = "last"

// minRunPrefix is how much of a run's name must be given: less is hardly meant.
const minRunPrefix = 4

func meansRun(word, run string) bool {
	return word == lastRun || word == run || len(word) >= minRunPrefix && strings.HasPrefix(run, word)
}

// Find reads the run that a word means: of this machine, else of another host.
func (r Records) Find(ctx context.Context, word string) (History, error) {
	var found []func() (History, error)
	var names []string
	match := func(name string, read func() (History, error)) {
		if meansRun(word, name) && !slices.Contains(names, name) {
			names, found = append(names, name), append(found, read)
		}
	}
	folders := r.Folders()
	if word == lastRun {
		folders = folders[:1] // of runs by a rule alone
	}
	for _, open := range folders {
		disk, own, err := runsOf(open)
		if err != nil {
			return History{}, err
		}
		for _, run := range own {
			match(run, func() (History, error) { return ReadRun(disk, run) })
		}
	}
	shared, sharedErr := r.SharedRuns(ctx, 0)
	for _, run := range shared {
		match(run.ID, func() (History, error) { return historyOfShared(run), nil })
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
			return History{}, sharedErr
		}
		return History{}, fault.New(fault.KindNotFound, "no run is called %q", word).WithHint("`%s cleanup runs` lists the bulk runs", r.Program)
	}
	return History{}, fault.Usage("%q is a prefix of %d runs", word, len(names)).WithHint("%s", fewOf(names))
}

func fewOf(names []string) string {
	const most = 5
	if len(names) > most {
		return strings.Join(names[:most], ", ") + ", ..."
	}
	return strings.Join(names, ", ")
}
