package selector

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"sbx/internal/fault"
	"sbx/internal/sandbox"
)

// Order is the order of a list. The zero Order is the order of arrival.
type Order struct {
	Key        string `json:"key"` // one of SortKeys
	Descending bool   `json:"descending,omitempty"`
}

// SortKeys lists the keys of --sort. Ages and idle times rise from young to old; states are
// in the order of a sandbox's life.
func SortKeys() []string { return []string{"age", "name", "state", "provider", "idle", "id"} }

// ParseOrder parses a sort key, with a minus before it for falling order. Any other text,
// also the empty one, is fault.KindUsage.
func ParseOrder(text string) (Order, error) {
	key, falling := strings.CutPrefix(text, "-")
	if !slices.Contains(SortKeys(), key) {
		return Order{}, fault.Usage("no sort key %q", text).WithHint("%s", fault.Meant(key, SortKeys()))
	}
	return Order{Key: key, Descending: falling}, nil
}

// Arrange sorts items in place, as of now, by Compare.
func (o Order) Arrange(items []sandbox.Sandbox, now time.Time) {
	slices.SortStableFunc(items, func(a, b sandbox.Sandbox) int { return o.Compare(a, b, now) })
}

// Compare orders two sandboxes as of now, negative when a comes first. One without a value
// for the key (an unknown age, no activity) comes last in either direction; equal ones are
// ordered by reference. The zero Order makes all equal.
func (o Order) Compare(a, b sandbox.Sandbox, now time.Time) int {
	if o.Key == "" {
		return 0
	}
	x, knownX := o.sortValue(a, now)
	y, knownY := o.sortValue(b, now)
	byKey := cmp.Compare(stateRank(knownX), stateRank(knownY))
	if knownX && knownY {
		byKey = cmp.Or(cmp.Compare(x.number, y.number), strings.Compare(x.text, y.text))
		if o.Descending {
			byKey = -byKey
		}
	}
	return cmp.Or(byKey, strings.Compare(a.Ref().String(), b.Ref().String()))
}

func stateRank(known bool) int {
	if known {
		return 0
	}
	return 1
}

// orderValue is what is compared: a number or a text, by key.
type orderValue struct {
	number int64
	text   string
}

func (o Order) sortValue(sb sandbox.Sandbox, now time.Time) (orderValue, bool) {
	switch o.Key {
	case "age":
		age, source := sb.Age(now)
		return orderValue{number: int64(age)}, source != sandbox.AgeUnknown
	case "idle":
		idle, known := sb.Idle(now)
		return orderValue{number: int64(idle)}, known
	case "state":
		at := slices.Index(sandbox.States(), sb.State)
		return orderValue{number: int64(at)}, at >= 0 && sb.State != sandbox.StateUnknown
	case "name":
		return orderValue{text: sb.Name}, sb.Name != ""
	case "provider":
		return orderValue{text: sb.Provider}, true
	}
	return orderValue{text: sb.ID}, true
}
