package task_test

import (
	"slices"
	"time"

	"sbx/internal/fault"
	"sbx/internal/sandbox"
	"sbx/internal/task"
)

// lie is the model of lies: in one world one source says what is not so, of one sandbox or of all, once, for a while
// or for ever. That its requests fail or take long (harms) is no lie: nobody believes anything then.
type lie struct {
	source, says string // a row of sources; "" = nothing lies
	from, until  time.Duration
	once, told   bool
	about        int  // the how manieth sandbox of the world, from 1; 0 = all
	hid          bool // the list has hidden a sandbox that is on no record
}

// sources are what may lie, and what it says then. Statuses are answers of an error.
func sources() map[string][]string {
	return map[string][]string{
		"record": {"404", "410", "stopped", "older", "400", "401", "403", "503"},
		"list":   {"lacks", "twice", "stopped", "older", "403", "503"},
		"inside": {"404", "410", "400", "401", "403", "503", "older", "cut", "cut"},
		"answer": {"404", "410", "ignored", "done, 503", "done, 403", "done, 404", "create: twice", "create: lost"},
	}
}

// deceive chooses the lie of the world. Some have none, as those of the seeds from before.
func (s *sim) deceive() {
	if s.quiet || slices.Contains(knownSeeds(), s.Seed) || s.Roll("lies") < 0.4 {
		return
	}
	l := &s.lie
	l.source = pick(s.Roll("source"), []string{"record", "list", "inside", "answer"})
	l.says = pick(s.Roll("says"), sources()[l.source])
	l.from = time.Duration(s.Roll("lies from") * s.Roll("lies too") * float64(80*time.Second))
	l.until = forever
	switch x := s.Roll("lies for"); {
	case x < 0.35:
		l.once = true
	case x < 0.8:
		l.until = l.from + time.Duration(s.Roll("lies long")*s.Roll("lies longer")*float64(chaos))
	}
	if s.Roll("lies about") < 0.5 {
		l.about = 1 + int(s.Roll("lies about which")*3)
	}
	s.leaves = s.Roll("leaves") < 0.4
	s.Logf("lie %+v, leaves records: %v", *l, s.leaves)
}

func pick(roll float64, from []string) string { return from[int(roll*float64(len(from)))] }

// truthful reports whether nothing lies in this world: a read shows the machine itself then.
func (s *sim) truthful() bool { return s.lie.source == "" }

// hidesEnds reports whether some end can never be proved: what shows it lies for ever, or a record is never deleted.
func (s *sim) hidesEnds() bool {
	l := &s.lie
	return !l.once && l.until == forever && (l.source == "record" || l.source == "list" || l.source == "answer" && s.leaves)
}

// tells returns what a source says of a sandbox instead of the truth, if that is one of the possible answers; "" = the
// truth.
// The lock is held.
func (s *sim) tells(source string, b *box, possible ...string) string {
	l, at := &s.lie, time.Since(s.Began)
	switch {
	case l.source != source, l.once && l.told, at < l.from, at >= l.until, !slices.Contains(possible, l.says),
		l.about > 0 && slices.Index(s.boxes, b)+1 != l.about:
		return ""
	case l.says == "lacks" && !s.onRecord(b):
		// What a create without an answer has made is known by the list alone, so that it hides such a one once only.
		if l.hid {
			return ""
		}
		l.hid = true
	}
	l.told = true
	s.Logf("the %s lies of %s: %s", source, b, l.says)
	return l.says
}

// onRecord reports whether a task knows the id of a box. The lock is held.
func (s *sim) onRecord(b *box) bool {
	k, _ := s.kept(b.task)
	return slices.ContainsFunc(k.Attempts, func(a task.Attempt) bool { return a.Sandbox == b.id })
}

// lied is the error of a lie.
func lied(says, id string) error {
	switch says[len(says)-3:] {
	case "404":
		return fault.New(fault.KindNotFound, "%s: 404", id)
	case "410":
		return absent(id)
	case "401", "403":
		return fault.New(fault.KindAuth, "%s: %s", id, says)
	case "503":
		return fault.New(fault.KindUnavailable, "%s: 503", id)
	}
	return fault.New(fault.KindUnknown, "%s: %s", id, says)
}

// state is what an honest record says of a box; "" = there is none. The lock is held.
func (s *sim) state(b *box) sandbox.State {
	switch {
	case b.alive(time.Now()):
		return sandbox.StateRunning
	case s.leaves && !b.deleted:
		return sandbox.StateStopped
	}
	return ""
}

// record is the answer to a read by id. The lock is held.
func (s *sim) record(ref sandbox.Ref) (sandbox.Sandbox, error) {
	b := s.find(ref.ID)
	state, possible := s.state(b), []string{"400", "401", "403", "503"}
	if state != "" {
		possible = append(possible, "404", "410")
	}
	state, says := s.misread("record", b, state, possible)
	switch {
	case says != "":
		return sandbox.Sandbox{}, lied(says, ref.ID)
	case state == "":
		return sandbox.Sandbox{}, absent(ref.ID)
	}
	return sandbox.Sandbox{Provider: ref.Provider, ID: ref.ID, State: state}, nil
}

// rows is the list of the boxes that a query selects. That it lacks young ones would be a second lie where another
// source lies. The lock is held.
func (s *sim) rows(profile string, selects func(*box) bool) ([]sandbox.Sandbox, error) {
	var found []sandbox.Sandbox
	for _, b := range s.boxes {
		if !selects(b) || time.Now().Before(b.listed) && (s.truthful() || s.lie.source == "list") {
			continue
		}
		state, possible := s.state(b), []string{"403", "503"}
		if state != "" {
			possible = append(possible, "lacks", "twice")
		}
		state, says := s.misread("list", b, state, possible)
		row := sandbox.Sandbox{Provider: profile, ID: b.id, State: state}
		switch {
		case says == "403", says == "503":
			return nil, lied(says, "the list")
		case says == "lacks", state == "":
			continue
		case says == "twice":
			found = append(found, row)
		}
		found = append(found, row)
	}
	return found, nil
}

// misread is the state that a record or a row shows, or another lie that it tells. The lock is held.
func (s *sim) misread(source string, b *box, state sandbox.State, possible []string) (sandbox.State, string) {
	if state == sandbox.StateRunning {
		possible = append(possible, "stopped")
	} else {
		possible = append(possible, "older")
	}
	switch says := s.tells(source, b, possible...); says {
	case "stopped":
		return sandbox.StateStopped, ""
	case "older":
		return sandbox.StateRunning, ""
	default:
		return state, says
	}
}

// insideOf is the lie that is told inside a box: an error, or that its program still runs. The lock is held.
func (s *sim) insideOf(b *box) (older bool, err error) {
	possible := []string{"400", "401", "403", "503"}
	if b.alive(time.Now()) {
		possible = append(possible, "404", "410")
	}
	if b.over(time.Now()) {
		possible = append(possible, "older")
	}
	switch says := s.tells("inside", b, possible...); says {
	case "", "older":
		return says == "older", nil
	default:
		return false, lied(says, b.id)
	}
}

// works reports whether the program of an attempt runs, within the limits of its task.
func (s *sim) works(t task.Task, a *task.Attempt) bool {
	b, now := s.find(a.Sandbox), t.ReadAt
	if b == nil || !b.alive(time.Now()) || b.over(time.Now()) || s.jumps {
		return false
	}
	limits := t.Spec.Limits
	within := func(since time.Time, limit time.Duration) bool { return limit == 0 || now.Before(since.Add(limit)) }
	return (t.DeadlineAt.IsZero() || now.Before(t.DeadlineAt)) && within(a.IntentAt, limits.Attempt) && within(a.StartedAt, limits.Command)
}

// onBelieved checks that no lie ends an attempt, or lets a sweep take a task whose program works.
func (s *sim) onBelieved(p *proc, before, after task.Task) {
	a := before.Last()
	if s.truthful() || before.State != task.Running || before.Phase != task.Working || a == nil || a.Exit != nil || a.Expired != "" || !s.works(after, a) {
		return
	}
	if p.verb == "sweep" && p.is(after.Owner) && before.Owner != after.Owner {
		s.Breakf("13: %s takes %s, whose program works", p, after.ID)
	}
	// A log whose streams keep ending shows silence, as far as it goes.
	if b := s.find(a.Sandbox); after.Last().Expired == task.ReasonInactivity && b.prog.talks > 0 && s.lie.says == "cut" && s.lie.once && p.froze.IsZero() && !s.hurtsCloud() {
		s.Breakf("13: %s ends attempt %d of %s as silent, and its program talks", p, a.N, after.ID)
	}
	end := after.Last().Exit
	if end == nil || after.Phase != task.Working {
		return
	}
	// What refuses every query for a minute (unansweredLimit) has ended.
	refused := s.lie.source == "inside" && time.Since(s.Began)-s.lie.from >= time.Minute && end.Class == sandbox.ClassTransport
	if slices.Contains([]sandbox.Class{sandbox.ClassGone, sandbox.ClassInfra, sandbox.ClassTransport}, end.Class) && !refused {
		s.Breakf("13: %s ends attempt %d of %s as %s, and its program works", p, a.N, after.ID, end.Class)
	}
}

// hurtsCloud reports whether any request to the provider may fail or take long.
func (s *sim) hurtsCloud() bool {
	return slices.ContainsFunc(s.harms, func(h harmful) bool { return h.place == "cloud" && h.op == "" })
}

// onStart counts how often a program was started. What a create made that a proxy repeated, or that arrived after its
// sender had stood still, is no start of the task; nor is what ended before any answer or list has named it, since
// nobody can know of it. The lock is held.
func (s *sim) onStart(t *truth) {
	starts := map[string]bool{}
	for _, b := range s.boxes {
		if b.task == t.id && !b.stray && (s.onRecord(b) || b.alive(time.Now())) {
			starts[b.nonce] = true
		}
	}
	if most := t.spec.Attempts; most > 0 && len(starts) > most {
		s.Breakf("14: the program of %s was started %d times, and %d were allowed", t.id, len(starts), most)
	}
}

// onLeft checks that an attempt that is gone has left no record that costs money.
func (s *sim) onLeft(a task.Attempt, id string) {
	for _, b := range s.boxes {
		if b.task == id && b.nonce == a.Nonce && !b.stray && s.state(b) == sandbox.StateStopped {
			s.Breakf("5: attempt %d of %s is gone, and the record of %s is left", a.N, id, b)
		}
	}
}
