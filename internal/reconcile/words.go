package reconcile

// Class says on which sides a sandbox was found.
type Class string

// The closed list of classes.
const (
	RecordOnly Class = "record_only" // on record, and the provider has none
	RealOnly   Class = "real_only"   // at the provider, and on no record
	Differs    Class = "differs"     // on both sides, and they say different things
	Both       Class = "both"        // on both sides, and they agree as far as can be told
)

// Classes lists every class, in the order of the runbook's counts.
func Classes() []Class { return []Class{RecordOnly, RealOnly, Differs, Both} }

// Cause says how a row came to be what it is.
type Cause string

// The closed list of causes.
const (
	CauseAgrees    Cause = "agrees"     // both sides say that it lives
	CauseGhost     Cause = "ghost"      // recorded as living, and proved to be gone
	CauseStale     Cause = "stale"      // recorded as living, and ended
	CauseZombie    Cause = "zombie"     // a task at work whose sandbox has ended
	CauseOrphan    Cause = "orphan"     // it lives, and nobody has it on record
	CauseLeak      Cause = "leak"       // recorded as ended, and it lives
	CauseOverdue   Cause = "overdue"    // kept alive beyond what its record allows
	CauseKept      Cause = "kept_alive" // its task is over, and it is meant to live on
	CauseDuplicate Cause = "duplicate"  // several records name it
	CauseReused    Cause = "reused"     // the record speaks of another that had this id or name
	CauseEnding    Cause = "ending"     // on its way to the end
	CauseStopped   Cause = "stopped"    // recorded as living, and stopped where it could go on
	CauseUnclear   Cause = "unclear"    // one of the sides does not say whether it should live
	CauseUnproved  Cause = "unproved"   // the read by id that would prove it has failed
)

// Action is what is to be done about a row.
type Action string

// The closed list of actions.
const (
	ActNone      Action = "none"            // nothing, for anybody
	ActMark      Action = "mark_terminated" // bring the record to its end
	ActTerminate Action = "terminate"
	ActAdopt     Action = "adopt" // put it on record
	ActReport    Action = "report"
)

// Acts says that sbx itself would change something.
func (a Action) Acts() bool { return a == ActMark || a == ActTerminate || a == ActAdopt }
