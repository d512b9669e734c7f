package cleanup_test

import (
	"context"
	"time"

	"sbx/internal/cleanup"
	"sbx/internal/fault"
	"sbx/internal/journal"
	"sbx/internal/runs"
	"sbx/internal/sandbox"
)

// onSurvey compares a survey with the true listing: everything in it is selected or kept,
// once, and a sandbox without an age is kept and counted as such.
func (s *sim) onSurvey(b *bulk) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b.inc.dead {
		return
	}
	grounds, selected := map[sandbox.Ref]cleanup.KeepReason{}, 0
	for _, j := range b.survey.Selected {
		selected++
		b.inc.first[j.Sandbox.Ref()] = j.Sandbox
		if seen := b.inc.listings[j.Sandbox.Provider]; !seen.complete {
			s.Breakf("%s selects %s, of a profile that was not listed whole", b.inc, j.Sandbox.Ref())
		}
	}
	for _, j := range b.survey.Kept {
		grounds[j.Sandbox.Ref()] = j.KeepReason
	}
	total := 0
	for name, seen := range b.inc.listings {
		c := s.cloud(name)
		if !seen.complete {
			continue
		}
		total += len(seen.fleet)
		for _, sb := range seen.fleet {
			b.gens(sb.Ref(), seen.gens[sb.ID])
			unknown := sb.CreatedAt.IsZero() || sb.CreatedAt.After(b.survey.At)
			kept, there := grounds[sb.Ref()]
			if unknown && b.order.olderThan > 0 && !there {
				s.Breakf("%s: the age of %s is not known, and it is not kept", b.inc, sb.Ref())
			}
			_, marked := sb.Labels["sbx/keep"]
			plain := sb.State == sandbox.StateRunning && b.order.state == "" && b.order.label == "" && !marked && !s.protect[sb.Ref()] && c.owns(sb.Labels)
			if unknown && b.order.olderThan > 0 && plain && kept != cleanup.KeepAgeUnknown {
				s.Breakf("%s: the age of %s is not known, and it is counted as %q", b.inc, sb.Ref(), kept)
			}
		}
	}
	counted := 0
	for _, n := range b.survey.KeepReasons() {
		counted += n
	}
	if total != selected+counted {
		s.Breakf("%s saw %d sandboxes, selects %d and keeps %d", b.inc, total, selected, counted)
	}
	s.Logf("%s: %d selected, kept %v, %d profiles left out", b.inc, selected, b.survey.KeepReasons(), len(b.survey.Errs()))
}

// onBegin records what a run is about to do.
func (s *sim) onBegin(b *bulk, plan cleanup.Plan, refused error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b.inc.dead {
		return
	}
	if b.inc.verb == "plan" {
		s.Breakf("%s is a dry run and begins to act", b.inc)
	}
	run := &runTruth{order: b.order, listings: b.inc.listings, items: map[sandbox.Ref]itemTruth{}, refused: refused != nil, requested: map[sandbox.Ref]int{}}
	for _, i := range plan.Items {
		run.items[i.Ref] = itemTruth{state: i.State, created: i.CreatedAt, owner: i.Owner, gen: b.meant[i.Ref]}
	}
	s.runs[b.id], b.inc.run = run, b.id
	s.Logf("%s begins %s with %d items; refused: %v", b.inc, b.id, len(plan.Items), refused)
}

func (s *sim) onResume(b *bulk) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b.inc.run = b.id
	s.runs[b.id].final = s.durable(b.id).results
	s.Logf("%s goes on with %s", b.inc, b.id)
}

// truth is the sandbox that a plan meant. The lock is held.
func (s *sim) truth(run *runTruth, ref sandbox.Ref) *box {
	return s.cloud(ref.Provider).generation(ref.ID, run.items[ref].gen)
}

// onEnding compares a reported outcome with the true state at that moment.
func (s *sim) onEnding(inc *incarnation, e sandbox.Ending) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if inc.dead {
		return
	}
	s.Logf("%s: %s is %s: %s", inc, e.Ref, e.Outcome, e.Reason)
	if was := s.runs[inc.run].final[e.Ref]; (was == sandbox.OutcomeVerified || was == sandbox.OutcomeAlreadyGone) && e.Outcome != was {
		s.Breakf("%s says that %s is %s, which the disk said is %s", inc, e.Ref, e.Outcome, was)
	}
	if e.Outcome != sandbox.OutcomeVerified && e.Outcome != sandbox.OutcomeAlreadyGone {
		return
	}
	if b := s.truth(s.runs[inc.run], e.Ref); b != nil && !b.over(time.Now()) && b.state != sandbox.StateStopped {
		s.Breakf("%s says that %s is %s, and it is %s", inc, e.Ref, e.Outcome, b.now(time.Now(), false))
	}
	asked, did := inc.requested[e.Ref]
	if e.Outcome == sandbox.OutcomeVerified && did && !inc.readAfter[e.Ref].After(asked) {
		s.Breakf("%s says that %s is verified, and did not read it after it asked", inc, e.Ref)
	}
}

// onEnd compares the result of a run with its parts.
func (s *sim) onEnd(b *bulk, endings []sandbox.Ending, verdict error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b.inc.dead {
		return
	}
	run := s.runs[b.id]
	seen := map[sandbox.Ref]int{}
	undone := 0
	for _, e := range endings {
		seen[e.Ref]++
		switch e.Outcome {
		case sandbox.OutcomeVerified, sandbox.OutcomeAlreadyGone, sandbox.OutcomeChanged, sandbox.OutcomeSkipped:
		default:
			undone++
		}
	}
	for ref := range run.items {
		if seen[ref] != 1 {
			s.Breakf("%s: %s comes out %d times", b.inc, ref, seen[ref])
		}
	}
	if len(endings) != len(run.items) {
		s.Breakf("%s: %d outcomes of %d items", b.inc, len(endings), len(run.items))
	}
	left := 0
	for _, l := range run.listings {
		if !l.complete {
			left++
		}
	}
	if fault.ExitCode(verdict) != 0 {
		return
	}
	if undone > 0 || left > 0 {
		s.Breakf("%s: exit 0 with %d sandboxes undone and %d profiles not seen whole", b.inc, undone, left)
	}
	d := s.durable(b.id)
	for _, e := range endings {
		if d.results[e.Ref] != e.Outcome {
			s.Breakf("%s: exit 0, and the disk says %q of %s, which is %s", b.inc, d.results[e.Ref], e.Ref, e.Outcome)
		}
	}
	if !d.ended {
		s.Breakf("%s: exit 0, and the disk does not know of its end", b.inc)
	}
}

// judge compares the journals with the true state when everything is over.
func (s *sim) judge() {
	reader := s.boot("judge", "read", false)
	defer reader.kill(context.Canceled)
	names, err := journal.Runs(mount{reader})
	if err != nil {
		s.Breakf("the journals cannot be listed: %v", err)
	}
	for _, id := range names {
		log, err := journal.Read(mount{reader}, id)
		if err != nil || log.Broken != "" {
			s.Breakf("the journal of %s was changed or damaged: %v %s", id, err, log.Broken)
			continue
		}
		h := runs.HistoryOf(log)
		run := s.runs[id]
		if run == nil || h.StartedAt.IsZero() {
			continue
		}
		if !run.compares && len(h.Begin.Plan.Items) != len(run.items) {
			s.Breakf("%s: %d items in the journal, %d in truth", id, len(h.Begin.Plan.Items), len(run.items))
		}
		for ref := range run.items {
			outcome := h.Outcome(ref)
			b := s.truth(run, ref)
			ended := b == nil || b.over(time.Now()) || b.state == sandbox.StateStopped
			if !ended && (outcome == sandbox.OutcomeVerified || outcome == sandbox.OutcomeAlreadyGone) {
				s.Breakf("%s: the journal says that %s is %s, and it is not over", id, ref, outcome)
			}
		}
		if c := h.Counts(); !run.compares && c.Selected != len(run.items) {
			s.Breakf("%s: counts of %d items, %d in truth", id, c.Selected, len(run.items))
		}
	}
}
