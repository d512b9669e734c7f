package reconcile

import (
	"time"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/sandbox"
	"sbx/internal/store"
	"sbx/internal/triage"
)

// Defaults and floors of what proves an orphan.
const (
	// MinObservations is the fewest looks that may prove anything: one never does.
	MinObservations     = 2
	DefaultObservations = 2
	DefaultGrace        = 5 * time.Minute  // between two looks that count
	DefaultCreateGrace  = 10 * time.Minute // from a sandbox's start to its record being written
	DefaultRecordsAge   = time.Hour        // from which a dump of records is too old to act on
)

// Rules are what a plan is judged by. The functions are called from one
// goroutine while planning, and from several while fixing.
type Rules struct {
	Observations int           // looks that prove an orphan or a leak; at least MinObservations
	Grace        time.Duration // apart from each other
	CreateGrace  time.Duration // a younger sandbox, or record, may still be on its way
	RecordsAge   time.Duration // the oldest dump that may be acted on
	// Observe counts this look as an observation. Without it nothing is written.
	Observe bool
	// Adopt puts orphans on record where they would else be ended.
	Adopt bool
	// Delete also destroys what the provider would keep.
	Delete bool

	Protected  func(sandbox.Sandbox) string // why it may not be ended; "" = it may
	Owned      func(profile string, labels map[string]string) bool
	Thresholds func(sandbox.Sandbox) triage.Thresholds
}

// Engine compares records with reality. Its parts are set once.
type Engine struct {
	Fleet     *fleet.Fleet
	Now       func() time.Time
	Rules     Rules
	Sightings store.SightingStore
	Sources   map[string]Source // by profile
}

// New makes an engine. Rules that would let one look prove something, or that name
// nobody who protects and owns, are fault.KindUsage.
func New(e Engine) (*Engine, error) {
	r := e.Rules
	switch {
	case r.Observations < MinObservations:
		return nil, fault.Usage("%d observations prove nothing", r.Observations).WithHint("at least %d are needed, --grace apart", MinObservations)
	case r.Grace <= 0 || r.CreateGrace <= 0 || r.RecordsAge <= 0:
		return nil, fault.Usage("every grace must be longer than nothing")
	case e.Fleet == nil || e.Now == nil || e.Sightings == nil || r.Protected == nil || r.Owned == nil || r.Thresholds == nil:
		return nil, fault.Usage("the rules of reconciling are not complete")
	}
	return &e, nil
}
