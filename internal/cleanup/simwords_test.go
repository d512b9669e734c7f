package cleanup_test

import (
	"fmt"
	"strings"
	"time"
)

// scene describes what the seed has made.
func (s *sim) scene(errands []errand) {
	for _, c := range s.clouds {
		s.Logf("cloud %s: kind %d, clock %s ahead, stops %v, leaves %s, flaps %s, early %v, production %v, age-only %v, owned %s, stuck_after %v",
			c.name, c.kind, c.skew, c.stops, c.leaves, c.flaps, c.early, c.production, c.ageOnly, c.owned, c.stuckAfter)
		for _, b := range c.order {
			s.Logf("  %s/%s %s", c.name, b.id, b.words(s.Began))
		}
	}
	for _, h := range s.harms {
		s.Logf("harm: %s %s page %d %q, %.0f%% from %s until %s", h.profile, h.op, h.page, h.harm, 100*h.chance, h.from, h.until)
	}
	for ref := range s.protect {
		s.Logf("protected by the configuration: %s", ref)
	}
	for _, e := range errands {
		s.Logf("errand %s after %s (plans %v, crashes %v): %s", e.name, e.after, e.plans, e.crashes, strings.TrimPrefix(fmt.Sprintf("%+v", e.order), "{"))
	}
}

func (b *box) words(now time.Time) string {
	text := fmt.Sprintf("%s, %s old (record says %q), worked %s ago, labels %v", b.state, now.Sub(b.created), b.says, now.Sub(b.worked), b.labels)
	for _, w := range []struct {
		is   bool
		text string
	}{
		{!b.busyFrom.IsZero(), "busy"}, {b.recordTells, "its record tells"}, {b.logs, "its log tells"}, {b.deaf, "deaf"}, {b.endFor == forever, "never ends"},
	} {
		if w.is {
			text += ", " + w.text
		}
	}
	return fmt.Sprintf("%s, %s %q, ends in %s", text, "agent", b.agent, b.endFor)
}
