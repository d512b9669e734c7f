package recall

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"sbx/internal/journal"
	"sbx/internal/ops"
	"sbx/internal/runs"
	"sbx/internal/sandbox"
	"sbx/internal/store"
)

// AuditRequest says which acts are listed.
type AuditRequest struct {
	Since    time.Time         // requested then or later
	Profiles []string          // none = any, also those that are configured no more
	Subject  string            // a REF, an id, a name, a task or a run, or the beginning of one; "" = any
	Verbs    []string          // none = any
	Outcomes []sandbox.Outcome // none = any; "" = not known
	Who      string            // "" = anybody
	Limit    int               // the newest alone; 0 = all
}

// AuditResult are acts, the newest first.
type AuditResult struct {
	Acts      []runs.Act
	Truncated bool
	// Unreported are runs of other hosts that have not reported what they did: they go on, were
	// interrupted, could not reach the shared store, or are of an older version of sbx.
	Unreported []store.Run
	Errors     []error // the journals that cannot be read or trusted
}

// Audit lists what sbx terminated, deleted, extended or changed in records: from the journals of this
// machine, and what other hosts have reported to a store that is shared.
func Audit(ctx context.Context, env *ops.Env, req AuditRequest) (*AuditResult, error) {
	if err := env.RequireState(); err != nil {
		return nil, err
	}
	a := &audit{env: env, req: req, here: map[string]bool{}, result: &AuditResult{}}
	for _, open := range env.Runs().Folders() {
		disk, err := open()
		if err == nil {
			err = a.readJournals(ctx, disk)
		}
		a.addError(err)
	}
	a.addError(a.readShared(ctx))
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	r := a.result
	slices.SortStableFunc(r.Acts, func(a, b runs.Act) int { return b.At.Compare(a.At) })
	if r.Truncated = req.Limit > 0 && len(r.Acts) > req.Limit; r.Truncated {
		r.Acts = r.Acts[:req.Limit]
	}
	return r, nil
}

type audit struct {
	env    *ops.Env
	req    AuditRequest
	here   map[string]bool // the runs of which this machine has a journal
	result *AuditResult
}

func (a *audit) addError(err error) {
	if err != nil {
		a.result.Errors = append(a.result.Errors, err)
	}
}

// readJournals reads every journal, since a run may be resumed days after it has begun, and since
// only all of them show that one is missing.
func (a *audit) readJournals(ctx context.Context, disk journal.Disk) error {
	names, err := journal.Runs(disk)
	if err != nil {
		return err
	}
	var logs []journal.Log
	for _, run := range slices.Backward(names) {
		if a.here[run] = true; ctx.Err() != nil {
			break
		}
		acts, log, err := runs.ReadActs(disk, run)
		a.addError(err)
		switch {
		case log.Broken != "":
			a.addError(runs.BrokenError(run, log.Broken))
		case err == nil && log.Count == 0:
			a.addError(runs.BrokenError(run, "it has no entry: the run was interrupted before its first, or somebody emptied it"))
		}
		logs = append(logs, log)
		a.addActs(acts)
	}
	a.result.Errors = append(a.result.Errors, a.env.Runs().Missing(logs)...)
	return nil
}

// readShared adds what other hosts have reported. A run whose journal is on this machine is not
// read twice.
func (a *audit) readShared(ctx context.Context) error {
	ctx, stop := context.WithTimeout(ctx, a.env.Process.TimeScale.Limit(ops.ShareLimit))
	defer stop()
	acts, err := a.env.Runs().SharedActs(ctx, a.req.Since)
	reported := map[string]bool{}
	for _, act := range acts {
		if reported[act.Run] = true; !a.here[act.Run] {
			a.addActs([]runs.Act{act})
		}
	}
	list, errRuns := a.env.Runs().SharedRuns(ctx, 0)
	for _, run := range list {
		acted := run.Acted && run.Selected > run.Counts[string(sandbox.OutcomeSkipped)]+run.Counts[string(sandbox.OutcomeNotAttempted)]
		if !a.here[run.ID] && !reported[run.ID] && acted && !run.StartedAt.Before(a.req.Since) {
			a.result.Unreported = append(a.result.Unreported, run)
		}
	}
	return errors.Join(err, errRuns)
}

func (a *audit) addActs(acts []runs.Act) {
	for _, act := range acts {
		if a.req.matches(act) {
			a.result.Acts = append(a.result.Acts, act)
		}
	}
}

func (r AuditRequest) matches(act runs.Act) bool {
	return !act.At.Before(r.Since) &&
		(len(r.Profiles) == 0 || slices.Contains(r.Profiles, act.Ref.Provider)) &&
		(len(r.Verbs) == 0 || slices.Contains(r.Verbs, act.Verb)) &&
		(len(r.Outcomes) == 0 || slices.Contains(r.Outcomes, act.Outcome)) &&
		(r.Who == "" || act.Actor.Who == r.Who) && r.isSubject(act)
}

func (r AuditRequest) isSubject(act runs.Act) bool {
	if r.Subject == "" {
		return true
	}
	if act.Ref.String() == r.Subject || act.Name == r.Subject {
		return true
	}
	profile, id, whole := strings.Cut(r.Subject, "/")
	if whole {
		return profile == act.Ref.Provider && isPrefix(id, act.Ref.ID)
	}
	return isPrefix(r.Subject, act.Ref.ID) || isPrefix(r.Subject, act.TaskID) || isPrefix(r.Subject, act.Run)
}

// isPrefix says that a word is an id or a beginning that is long enough.
func isPrefix(word, id string) bool {
	return word == id || len(word) >= sandbox.MinPrefix && strings.HasPrefix(id, word)
}

// Chooses says that the request leaves acts out by more than their time.
func (r AuditRequest) Chooses() bool {
	return r.Subject != "" || r.Who != "" || len(r.Profiles)+len(r.Verbs)+len(r.Outcomes) > 0
}

// AuditVerbs are the verbs of which a journal tells.
func AuditVerbs() []string {
	return []string{runs.VerbCleanup, runs.VerbReconcile, runs.VerbTerminate, runs.VerbTask, runs.VerbStop, runs.VerbDrill, runs.VerbSweep, runs.VerbExtend}
}
