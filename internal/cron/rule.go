package cron

import (
	"fmt"
	"time"

	"sbx/internal/sandbox"
)

// Rule is what a run selects by, as far as a layer asks for it. What makes a run
// select more than its layer (--unowned, --ignore-activity) is not part of it.
type Rule struct {
	Reconcile  bool
	Emergency  bool          // the provider's own emergency cleanup
	Stuck      bool          // only what is stuck
	OlderThan  time.Duration // only what is older; 0 = of any age
	UsageAbove int           // only where more percent of a quota are used; 0 = however much is used
	Narrowing  []string      // flags that make the run do less than the fields above say
}

// Layer names the layer that a run by this rule belongs to, "" for none. Shortfall
// is why the run is no proof that its layer works; "" = it is one. A run that
// selects less than its layer proves nothing about the rest.
func (r Rule) Layer() (layer Layer, shortfall string) {
	switch {
	case r.Reconcile:
		layer = Reconcile
	case r.UsageAbove > 0 && !r.Stuck && (r.Emergency || r.OlderThan > 0):
		layer = Usage
	case r.UsageAbove > 0 || r.Emergency || r.Stuck && r.OlderThan > 0:
		return "", ShortfallNoLayer
	case r.Stuck:
		layer = Stuck
	case r.OlderThan > 0:
		layer = Age
	default:
		return "", ShortfallNoLayer
	}
	switch {
	case len(r.Narrowing) > 0:
		return layer, "it selected less, by " + r.Narrowing[0]
	case r.OlderThan > oldEnough:
		return layer, "it selected less, by --older-than " + sandbox.FormatDuration(r.OlderThan)
	case r.UsageAbove > usageAbove:
		return layer, fmt.Sprintf("it selected less, by --if-usage-above %d%%", r.UsageAbove)
	}
	return layer, ""
}

const (
	// ShortfallNoLayer is why a run proves no layer: its rule is that of none.
	ShortfallNoLayer = "it had the rule of no layer"

	oldEnough  = 10 * time.Minute // of the layers age and usage (R134)
	usageAbove = 80               // percent (R135)
)
