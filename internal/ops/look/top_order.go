package look

import (
	"cmp"
	"slices"
	"strings"

	"sbx/internal/fault"
	"sbx/internal/sandbox"
)

// TopOrder is the order of usage; the zero value is problems first.
type TopOrder struct {
	Key     string // one of TopSortKeys
	Reverse bool
}

// TopSortKeys lists the keys of `top --sort`: figures from the highest down, names from a.
func TopSortKeys() []string {
	return []string{"problem", "cpu", "memory", "growth", "operations", "name"}
}

// ParseTopOrder parses a sort key, with a minus before it for the reverse order. Any other
// text is fault.KindUsage.
func ParseTopOrder(text string) (TopOrder, error) {
	key, reverse := strings.CutPrefix(text, "-")
	if !slices.Contains(TopSortKeys(), key) {
		return TopOrder{}, fault.Usage("no sort key %q", text).WithHint("%s", fault.Meant(key, TopSortKeys()))
	}
	return TopOrder{Key: key, Reverse: reverse}, nil
}

// sortUsage sorts in place. What has no value for the key comes last in either direction.
func (o TopOrder) sortUsage(list []SandboxUsage) {
	slices.SortStableFunc(list, func(a, b SandboxUsage) int {
		switch o.Key {
		case "", "problem":
			return cmp.Or(o.turn(cmp.Compare(a.problemRank(), b.problemRank())), compareByCPU(a, b))
		case "name":
			return cmp.Or(o.turn(strings.Compare(a.Sandbox.TaskID+a.Sandbox.Name, b.Sandbox.TaskID+b.Sandbox.Name)), compareByCPU(a, b))
		}
		x, knownX := a.figureOf(o.Key)
		y, knownY := b.figureOf(o.Key)
		if !knownX || !knownY {
			return cmp.Or(cmp.Compare(boolRank(!knownX), boolRank(!knownY)), compareByCPU(a, b))
		}
		return cmp.Or(o.turn(cmp.Compare(y, x)), compareByCPU(a, b))
	})
}

func (o TopOrder) turn(compared int) int {
	if o.Reverse {
		return -compared
	}
	return compared
}

func boolRank(b bool) int {
	if b {
		return 1
	}
	return 0
}

// problemRank is 0 for what is stuck, then by how certain it is that something is wrong.
func (u SandboxUsage) problemRank() int {
	switch v := u.Verdict; {
	case v.Stuck == sandbox.True:
		return 0
	case v.Cause == sandbox.CauseNone:
		return 4
	case v.Confidence == sandbox.Certain, v.Confidence == sandbox.Probable:
		return 1
	case v.Confidence == sandbox.Hint:
		return 2
	}
	return 3
}

// figureOf is the figure of a sort key. Memory is the share of the limit, which says how near
// the end is; without a limit there is none.
func (u SandboxUsage) figureOf(key string) (float64, bool) {
	switch {
	case key == "cpu" && u.Trend.CPUPercent != nil:
		return *u.Trend.CPUPercent, true
	case key == "memory":
		return u.MemoryShare()
	case key == "growth" && u.Trend.MemorySlope != nil:
		return *u.Trend.MemorySlope, true
	case key == "operations" && u.Last.Operations != nil:
		return float64(*u.Last.Operations), true
	}
	return 0, false
}

// MemoryShare is how much of its memory limit a sandbox uses, from 0 to 1; false where either
// is unknown.
func (u SandboxUsage) MemoryShare() (float64, bool) {
	used, limit := u.Trend.MemoryBytes, u.Trend.MemoryLimitBytes
	if used == nil || limit == nil || *limit <= 0 {
		return 0, false
	}
	return float64(*used) / float64(*limit), true
}
