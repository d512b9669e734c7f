package selector

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"sbx/internal/fault"
	"sbx/internal/sandbox"
)

// Order is how a list is sorted. The zero Order keeps the order of arrival.
type Order struct {
	Key        string `json:"key"` // one of SortKeys
	Descending bool   `json:"descending,omitempty"`
}

// SortKeys lists the keys of --sort. Ages and idle times rise from young to
// old, states follow a sandbox's life.
func SortKeys() []string { return []string{"age", "name", "state", "provider", "idle", "id"} }

// ParseOrder reads a sort key, with a minus before it for falling order. Any
// other text, the empty one too, is fault.KindUsage.
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

// Compare orders two sandboxes as of now, negative when a comes first. What has
// no value for the key (an unknown age, no sign of life) stands last in either
// direction; equals are ordered by reference. The zero Order makes all equal.
func (o Order) Compare(a, b sandbox.Sandbox, now time.Time) int {
	if o.Key == "" {
		return 0
	}
	x, knownX := o.value(a, now)
	y, knownY := o.value(b, now)
	byKey := cmp.Compare(rank(knownX), rank(knownY))
	if knownX && knownY {
		byKey = cmp.Or(cmp.Compare(x.number, y.number), strings.Compare(x.text, y.text))
		if o.Descending {
			byKey = -byKey
		}
	}
	return cmp.Or(byKey, strings.Compare(a.Ref().String(), b.Ref().String()))
}

func rank(known bool) int {
	if known {
		return 0
	}
	return 1
}

// value is what is compared: a number or a text, by key.
type value struct {
	number int64
	text   string
}

func (o Order) value(sb sandbox.Sandbox, now time.Time) (value, bool) {
	switch o.Key {
	case "age":
		age, source := sb.Age(now)
		return value{number: int64(age)}, source != sandbox.AgeUnknown
	case "idle":
		idle, known := sb.Idle(now)
		return value{number: int64(idle)}, known
	case "state":
		at := slices.Index(sandbox.States(), sb.State)
		return value{number: int64(at)}, at >= 0 && sb.State != sandbox.StateUnknown
	case "name":
		return value{text: sb.Name}, sb.Name != ""
	case "provider":
		return value{text: sb.Provider}, true
	}
	return value{text: sb.ID}, true
}
