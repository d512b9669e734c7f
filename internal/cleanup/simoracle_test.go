package cleanup_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"time"

	"sbx/internal/sandbox"
)

// runTruth is the true state of one run, over all of its processes.
type runTruth struct {
	order     order
	listings  map[string]*listing
	items     map[sandbox.Ref]itemTruth
	refused   bool
	requested map[sandbox.Ref]int
	compares  bool                            // a run of reconcile
	final     map[sandbox.Ref]sandbox.Outcome // on the disk at the last resume
}

// itemTruth is an item of a plan, and which sandbox it meant.
type itemTruth struct {
	state   sandbox.State
	created time.Time
	owner   string
	gen     int
}

// durableRun is what of a journal no crash can remove.
type durableRun struct {
	intents map[sandbox.Ref]int
	results map[sandbox.Ref]sandbox.Outcome
	heard   map[sandbox.Ref]bool // a request was acknowledged
	ended   bool
}

// durable reads the synced part of a journal, with a parser of its own. The lock is held.
func (s *sim) durable(run string) durableRun {
	d := durableRun{intents: map[sandbox.Ref]int{}, results: map[sandbox.Ref]sandbox.Outcome{}, heard: map[sandbox.Ref]bool{}}
	f := s.disk.files[run+".jsonl"]
	if f == nil {
		return d
	}
	for text := f.data[:f.synced]; ; {
		line, rest, whole := bytes.Cut(text, []byte("\n"))
		if !whole {
			return d
		}
		var e struct {
			Entry string `json:"entry"`
			Data  struct {
				Ref     sandbox.Ref     `json:"ref"`
				Outcome sandbox.Outcome `json:"outcome"`
				Request struct {
					Acknowledged bool `json:"acknowledged"`
				} `json:"request"`
			} `json:"data"`
		}
		if json.Unmarshal(line, &e) != nil {
			return d
		}
		switch e.Entry {
		case "intent":
			d.intents[e.Data.Ref]++
			d.heard[e.Data.Ref] = false
		case "answer":
			d.heard[e.Data.Ref] = e.Data.Request.Acknowledged
		case "result":
			d.results[e.Data.Ref] = e.Data.Outcome
		case "end":
			d.ended = true
		}
		text = rest
	}
}

// onRequest checks a request to end against every rule when it is sent. The lock is held.
func (s *sim) onRequest(inc *incarnation, ref sandbox.Ref, del bool) {
	if inc.dead {
		return // it has no effect
	}
	s.Logf("%s asks %s to end", inc, ref)
	run := s.runs[inc.run]
	if run == nil {
		s.Breakf("%s asks %s to end without a run", inc, ref)
		return
	}
	if run.refused {
		s.Breakf("%s asks %s to end in a run that was refused", inc, ref)
	}
	for _, other := range s.procs {
		if other != inc && other.acting && !other.dead {
			s.Breakf("%s asks %s to end while %s acts", inc, ref, other)
		}
	}
	if _, before := inc.requested[ref]; before {
		s.Breakf("%s asks %s to end twice", inc, ref)
	}
	inc.requested[ref] = time.Now()
	run.requested[ref]++
	d := s.durable(inc.run)
	if d.intents[ref] < run.requested[ref] {
		s.Breakf("%s asks %s to end, and the disk holds %d intents for %d requests", inc, ref, d.intents[ref], run.requested[ref])
	}
	if was := d.results[ref]; was == sandbox.OutcomeVerified || was == sandbox.OutcomeAlreadyGone {
		s.Breakf("%s asks %s to end, which the disk says is %s", inc, ref, was)
	}
	if del && !run.order.delete {
		s.Breakf("%s deletes %s, and was not asked to delete", inc, ref)
	}
	s.guarded(inc, run, ref)
	if run.compares {
		s.proved(inc, run, ref)
		return
	}
	s.permitted(inc, run, ref)
}

// guarded checks the sums of a run against its limits.
func (s *sim) guarded(inc *incarnation, run *runTruth, ref sandbox.Ref) {
	o, c, seen := run.order, s.cloud(ref.Provider), run.listings[ref.Provider]
	if seen == nil || !seen.complete {
		s.Breakf("%s asks %s to end, of a profile that was not listed whole", inc, ref)
		return
	}
	if len(run.requested) > o.maxDelete {
		s.Breakf("%s asks %d sandboxes to end, more than %d", inc, len(run.requested), o.maxDelete)
	}
	n, fleet := 0, 0
	for r := range run.requested {
		if r.Provider == ref.Provider {
			n++
		}
	}
	for _, sb := range seen.fleet {
		if o.delete || sb.State != sandbox.StateTerminated && sb.State != sandbox.StateFailed {
			fleet++
		}
	}
	if n > 5 && 100*n > o.maxFraction*fleet {
		s.Breakf("%s asks %d of the %d sandboxes of %s to end, more than %d%%", inc, n, fleet, c.name, o.maxFraction)
	}
	if c.production && !slices.Contains(o.production, c.name) {
		s.Breakf("%s asks %s to end, which is production", inc, ref)
	}
	if !run.compares && c.kind >= clocked && seen.skew.Abs() > 2*time.Minute {
		s.Breakf("%s asks %s to end, and the clocks are %s apart", inc, ref, seen.skew)
	}
}

// permitted checks one sandbox, in its true state at the last read, against what the
// operator asked for and the safety rules allow.
func (s *sim) permitted(inc *incarnation, run *runTruth, ref sandbox.Ref) {
	v, read := inc.sights[ref]
	if !read || v.unreadable {
		s.Breakf("%s asks %s to end without having read it", inc, ref)
		return
	}
	if waited := time.Since(v.at); waited > 90*time.Second {
		s.Breakf("%s asks %s to end %s after it was read", inc, ref, waited)
	}
	item, planned := run.items[ref]
	if !planned {
		s.Breakf("%s asks %s to end, which is not in the plan", inc, ref)
		return
	}
	if v.state == sandbox.StateTerminating && run.requested[ref] == 2 && !s.durable(inc.run).heard[ref] {
		// It repeats a request that nobody acknowledged.
		before := v
		before.state = item.state
		for _, why := range []string{s.unprotected(ref, v), unchanged(item, before), s.ours(run.order, ref, v)} {
			if why != "" {
				s.Breakf("%s asks %s to end once more: %s", inc, ref, why)
			}
		}
		return
	}
	for _, why := range []string{
		s.unprotected(ref, v), unchanged(item, v),
		s.ours(run.order, ref, v), endable(run.order, v), s.oldEnough(run.order, ref, v), s.idle(inc, run.order, ref, v),
	} {
		if why != "" {
			s.Breakf("%s asks %s to end: %s", inc, ref, why)
		}
	}
}

func (s *sim) unprotected(ref sandbox.Ref, v sight) string {
	if s.protect[ref] {
		return "the configuration protects it"
	}
	word, there := v.labels["sbx/keep"]
	if !there {
		return ""
	}
	if until, err := time.Parse(time.RFC3339, word); err == nil && !s.believed(v).Before(until) {
		return ""
	}
	return "sbx/keep=" + word + " protects it"
}

func unchanged(item itemTruth, v sight) string {
	switch {
	case v.state != item.state:
		return "it was " + string(item.state) + " and is " + string(v.state)
	case !item.created.Equal(v.created):
		return "it is not the one that was planned"
	case item.gen != v.gen && !item.created.IsZero() && !v.created.IsZero():
		return "its id belongs to a younger one"
	case item.owner != v.labels["sbx/owner"]:
		return "it has another owner"
	}
	return ""
}

func (s *sim) ours(o order, ref sandbox.Ref, v sight) string {
	if !o.unowned && !s.cloud(ref.Provider).owns(v.labels) {
		return "it is not ours"
	}
	if o.label == "team=agents" && v.labels["team"] != "agents" {
		return "it does not have the label that was asked for"
	}
	return ""
}

func endable(o order, v sight) string {
	switch v.state {
	case sandbox.StatePaused:
		if !o.includePaused || !o.delete {
			return "it is paused"
		}
	case sandbox.StateStopped, sandbox.StateTerminated, sandbox.StateFailed:
		if !o.delete {
			return "it is over, and nothing is to be deleted"
		}
	case sandbox.StateUnknown:
		return "its state is unknown"
	}
	return ""
}

// oldEnough computes ages by this machine's clock, or by the true clock where the provider
// has one.
func (s *sim) oldEnough(o order, ref sandbox.Ref, v sight) string {
	age := s.believed(v).Sub(v.created)
	limit, rule := o.olderThan, "--older-than"
	c := s.cloud(ref.Provider)
	grant := c.limit(v.agent)
	if c.kind >= clocked {
		age = min(age, time.Since(shift(v.created, -c.skew)))
	}
	switch {
	case o.failedOlderThan > 0 && v.state == sandbox.StateFailed:
		limit, rule = o.failedOlderThan, "--failed-older-than"
	case o.failedOlderThan > 0 && o.olderThan == 0:
		return "only failed ones were asked for"
	case o.stuck && v.state == sandbox.StateRunning:
		limit, rule = grant, "stuck_after"
	case o.stuck && v.state == sandbox.StateProvisioning:
		limit, rule = 5*time.Minute, "the time to provision"
	case o.stuck:
		return "it is not stuck but " + string(v.state)
	}
	switch {
	case o.state != "" && v.state != o.state:
		return "it is not in the state that was asked for"
	case v.created.IsZero():
		return "its age is unknown"
	case age < 0:
		return "it comes from the future"
	case age <= limit:
		return "its age " + age.String() + " is not over " + limit.String() + " of " + rule
	case v.state == sandbox.StateRunning && grant > 10*time.Minute && age <= grant:
		return "its agent type may grow older"
	}
	return ""
}

// idle checks activity against what this process could know of it.
func (s *sim) idle(inc *incarnation, o order, ref sandbox.Ref, v sight) string {
	c := s.cloud(ref.Provider)
	if v.state != sandbox.StateRunning || o.ignoreActivity {
		return ""
	}
	limit := o.idleFor
	if limit == 0 {
		limit = time.Minute
	}
	heard, listened := inc.heard[ref]
	listened = listened && heard.gen == v.gen && s.quiet(c, v, heard.worked) >= -2*time.Minute
	recorded := v.recordTells && s.quiet(c, v, v.worked) >= -2*time.Minute
	switch {
	case recorded && s.quiet(c, v, v.worked) <= limit:
		return "its record shows life " + s.quiet(c, v, v.worked).String() + " ago"
	case listened && s.quiet(c, v, heard.worked) <= limit:
		return "its output shows life " + s.quiet(c, v, heard.worked).String() + " ago"
	case c.kind >= voiced && !inc.tried[ref]:
		return "nobody looked whether it works"
	case !recorded && !listened && !c.ageOnly:
		return "nothing tells whether it works"
	}
	return ""
}

// quiet is how long ago something was: by the true clock where the provider has one, else
// by this machine's.
func (s *sim) quiet(c *cloud, v sight, at time.Time) time.Duration {
	if c.kind >= clocked {
		return time.Since(at)
	}
	return s.believed(v).Sub(at)
}

// believed is the latest time that this machine's clock showed since a sandbox was read: it
// may jump back afterwards.
func (s *sim) believed(v sight) time.Time { return time.Now().Add(max(v.off, s.clock.off)) }
