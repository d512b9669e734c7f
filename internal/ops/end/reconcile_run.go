package end

import (
	"time"

	"sbx/internal/check"
	"sbx/internal/config"
	"sbx/internal/fleet"
	"sbx/internal/ops"
	"sbx/internal/reconcile"
	"sbx/internal/sandbox"
	"sbx/internal/store"
	"sbx/internal/triage"
)

// ReconcileRequest is what is asked of a comparison of records with what really runs.
type ReconcileRequest struct {
	Rules   reconcile.Rules // what is judged, and how; what comes from the configuration is added
	Records string          // where the records come from: provider, store, tasks:...; "" = the profile's default

	Check bool // it counts as a look, and finding something is its verdict
	Fix   bool // it acts on the plan
	Yes   bool // it is allowed: by the operator's flag, or by an answer

	Confirmed []sandbox.Ref // the rows that a person has confirmed: it acts on no other; nil = on all

	Line []string // the command line that was typed, quoted for a shell; for hints that repeat it

	Production  []string // production profiles that the operator has named
	MaxDelete   *int     // nil = as configured
	MaxFraction *int     // percent; nil = as configured
	Wait        time.Duration
	LockWait    time.Duration
	Textfile    string // where the figures of the run are written; "" = nowhere
	Ping        string // address that is pinged at the start and end of the run; "" = none
}

// ReconcileResult is what was compared, and what was done about it.
type ReconcileResult struct {
	RunID   string
	Plan    reconcile.Plan
	Limits  reconcile.Limits
	Endings []sandbox.Ending // of Fix
	Refused error            // why Fix began nothing; nil = it did
	// Verdict is the verdict of Fix; of Check where something was found, else of what could not
	// be compared.
	Verdict error
	// Subjects are the figures of each provider that was compared, for conditions.
	Subjects []check.Subject

	diagnose func(reconcile.Row) triage.Verdict
	run      *reconcileRun
}

// Diagnose is the judgement of the sandbox of a row.
func (r *ReconcileResult) Diagnose(row reconcile.Row) triage.Verdict { return r.diagnose(row) }

// ReconcilePlanned is an item of Reconcile: this is what Fix is about to act on.
type ReconcilePlanned struct{ Result *ReconcileResult }

// reconcileRun is one comparison, and what may follow it.
type reconcileRun struct {
	env    *ops.Env
	req    ReconcileRequest
	watch  ops.Observer
	id     string
	config *config.Config
	store  store.Store
	limits reconcile.Limits
	engine *reconcile.Engine
	fleet  *fleet.Fleet
}
