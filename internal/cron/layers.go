package cron

import (
	"fmt"
	"slices"
	"time"

	"sbx/internal/sandbox"
)

// Layer is one of the lines of defence (R133 to R136).
type Layer string

// The closed list, in the order in which they are printed.
const (
	Stuck     Layer = "stuck"     // ends what is stuck
	Age       Layer = "age"       // ends what is older than ten minutes, and what failed
	Usage     Layer = "usage"     // ends by age once the quota runs short
	Reconcile Layer = "reconcile" // compares records with reality
)

// Layers lists every layer.
func Layers() []Layer { return []Layer{Stuck, Age, Usage, Reconcile} }

// job is one line of a layer: what it runs and when.
type job struct {
	name  string // of its unit, and the value of Placeholder
	layer Layer
	place int // of its minutes: no two lines begin in the same one
	every time.Duration
	say   string
	args  []string
	check []string // instead of args where only a check is wanted; nil = it has none
	takes []string // of the flags of a Plan: those that its verb has
}

func layerJobs() []job {
	all := []string{flagLock, flagPing, flagTextfile}
	old := []string{"--older-than", "10m", "--include-failed", "--yes"}
	return []job{
		{"stuck", Stuck, 0, 5 * time.Minute, "terminate stuck sandboxes", []string{"cleanup", "--stuck", "--yes"}, nil, all},
		{
			"age", Age, 1, 15 * time.Minute, "terminate sandboxes older than ten minutes, or failed that long ago",
			[]string{"cleanup", "--older-than", "10m", "--failed-older-than", "10m", "--include-failed", "--yes"},
			nil, all,
		},
		{
			"usage", Usage, 2, 5 * time.Minute, "terminate by age once more than 80% of the quota is used",
			slices.Concat([]string{"cleanup", "--if-usage-above", "80%"}, old), nil, all,
		},
		{"reconcile", Reconcile, 3, time.Hour, "compare records with reality", []string{"reconcile", "--fix", "--yes"}, []string{"reconcile", "--check"}, all},
	}
}

// emergencyJob is the line of layer usage that leaves it to the provider (R135): it ends
// also what works, so it is offered and not switched on.
func emergencyJob() job {
	return job{
		"usage-emergency", Usage, 4, 5 * time.Minute, "run the provider's emergency cleanup once more than 80% of the quota is used",
		[]string{"cleanup", "--emergency", "--if-usage-above", "80%", "--yes"},
		nil,
		[]string{flagLock, flagPing, flagTextfile},
	}
}

// Command is what a layer runs, without the program; nil for a word that is none.
func Command(l Layer) []string {
	for _, j := range layerJobs() {
		if j.layer == l {
			return slices.Clone(j.args)
		}
	}
	return nil
}

// Every is how often a layer runs; 0 for a word that is none.
func Every(l Layer) time.Duration {
	for _, j := range layerJobs() {
		if j.layer == l {
			return j.every
		}
	}
	return 0
}

// firstMinute is the minute at which a line first runs in its period. It follows from the
// host, so that a fleet of cron hosts does not ask a provider all at once; and no two
// lines of one host begin in the same minute, since one lock is theirs.
func (j job) firstMinute(host string) int {
	seed := hashFNV(host)
	const apart = 5 // minutes, the shortest period
	slots := int(j.every/time.Minute) / apart
	return (seed+j.place)%apart + apart*(hashFNV(host+"/"+j.name)%slots)
}

// hashFNV is FNV-1a, which stays the same from release to release: a line that is printed again
// has the same minute.
func hashFNV(text string) int {
	h := uint32(2166136261)
	for i := range len(text) {
		h = (h ^ uint32(text[i])) * 16777619
	}
	return int(h >> 1)
}

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

// Layer names the layer that a run by this rule belongs to, "" for none. CoverageGap
// is why the run is no proof that its layer works; "" = it is one. A run that
// selects less than its layer proves nothing about the rest.
func (r Rule) Layer() (layer Layer, coverageGap string) {
	switch {
	case r.Reconcile:
		layer = Reconcile
	case r.UsageAbove > 0 && !r.Stuck && (r.Emergency || r.OlderThan > 0):
		layer = Usage
	case r.UsageAbove > 0 || r.Emergency || r.Stuck && r.OlderThan > 0:
		return "", GapNoLayer
	case r.Stuck:
		layer = Stuck
	case r.OlderThan > 0:
		layer = Age
	default:
		return "", GapNoLayer
	}
	switch {
	case len(r.Narrowing) > 0:
		return layer, "it covers only a part of its layer: " + r.Narrowing[0]
	case r.OlderThan > oldEnough:
		return layer, "it covers only a part of its layer: --older-than " + sandbox.FormatDuration(r.OlderThan)
	case r.UsageAbove > usageAbove:
		return layer, fmt.Sprintf("it covers only a part of its layer: --if-usage-above %d%%", r.UsageAbove)
	}
	return layer, ""
}

const (
	// GapNoLayer is why a run proves no layer: its rule is that of none.
	GapNoLayer = "its rule is not the rule of a layer"

	oldEnough  = 10 * time.Minute // of the layers age and usage (R134)
	usageAbove = 80               // percent (R135)
)
