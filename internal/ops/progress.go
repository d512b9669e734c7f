package ops

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"sbx/internal/fleet"
	"sbx/internal/sandbox"
)

// TellLooks shows how far a look at many sandboxes is.
func TellLooks(p Progress) func(fleet.LookProgress) {
	return func(at fleet.LookProgress) { p.Update(lookText(at)) }
}

// mostWaiting is of how many profiles is said that sandboxes have not answered.
const mostWaiting = 3

// lookText is how far a look is: "looked at 120 of 1,000, e2b: 87 wait for an answer".
func lookText(at fleet.LookProgress) string {
	text := "looked at " + PartText(at.Done, at.All)
	var waiting []string
	for _, profile := range sandbox.SortCounts(at.Waiting) {
		waiting = append(waiting, profile+": "+GroupedNumber(at.Waiting[profile]))
	}
	if len(waiting) == 0 {
		return text
	}
	return text + ", " + sandbox.FormatFirst(waiting, mostWaiting) + " wait for an answer"
}

// JoinedLooks are looks at several profiles that go on at once, as one progress.
type JoinedLooks struct {
	Progress Progress

	mu     sync.Mutex
	before string // what is said first
	looks  map[string]fleet.LookProgress
}

// Seen is fleet.Judging.Seen for one of the looks; all join the figures of one fleet.
func (j *JoinedLooks) Seen(name string) func(fleet.LookProgress) {
	return func(at fleet.LookProgress) {
		j.mu.Lock()
		defer j.mu.Unlock()
		if j.looks == nil {
			j.looks = map[string]fleet.LookProgress{}
		}
		j.looks[name] = fleet.LookProgress{Done: at.Done, All: at.All, Waiting: map[string]int{name: at.Waiting[name]}}
		j.update()
	}
}

// Say replaces what is said first.
func (j *JoinedLooks) Say(text string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.before = text
	j.update()
}

// update shows the sum. The lock is held.
func (j *JoinedLooks) update() {
	all := fleet.LookProgress{Waiting: map[string]int{}}
	for name, at := range j.looks {
		all.Done, all.All = all.Done+at.Done, all.All+at.All
		if n := at.Waiting[name]; n > 0 {
			all.Waiting[name] = n
		}
	}
	text := j.before
	if all.All > 0 {
		text += ", " + lookText(all)
	}
	j.Progress.Update(text)
}

// PartText is how much of a whole is done: "3,412 of 10,000".
func PartText(done, all int) string { return GroupedNumber(done) + " of " + GroupedNumber(all) }

// GroupedNumber writes a number for people: 10,000.
func GroupedNumber(n int) string {
	if n < 1000 {
		return strconv.Itoa(n)
	}
	return GroupedNumber(n/1000) + fmt.Sprintf(",%03d", n%1000)
}

// JoinCounts writes "e2b 3, local 1", in the order of the names.
func JoinCounts(counts map[string]int) string {
	parts := make([]string, 0, len(counts))
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%s %d", name, counts[name]))
	}
	return strings.Join(parts, ", ")
}
