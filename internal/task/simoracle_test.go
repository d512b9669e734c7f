package task_test

import (
	"context"
	"reflect"
	"slices"
	"time"

	"sbx/internal/sandbox"
	"sbx/internal/store"
	"sbx/internal/task"
)

// limitMB is the budget of all simulated tasks.
const limitMB = 1024

// truth is what is known of a task from outside the code under test.
type truth struct {
	id        string
	spec      task.Spec
	closed    string // the decision after which nothing of it may become public
	acked     bool   // a stop was acknowledged
	refused   bool   // a stop was refused because it is public already
	published int
	stopped   time.Time // when a stop was written
	over      bool
	ends      []sandbox.Class // every recorded end of an attempt
}

// kept reads a task as it is stored.
func (s *sim) kept(id string) (task.Task, bool) {
	row, err := s.mem.Task(context.Background(), id)
	if err != nil {
		return task.Task{}, false
	}
	return taskOf(row), true
}

// onCommit checks every change of a task when it is made.
func (s *sim) onCommit(p *proc, was, is store.Task) {
	before, after, t := taskOf(was), taskOf(is), s.tasks[is.ID]
	s.tell(p, before, after)
	s.onBelieved(p, before, after)
	if a := after.Last(); a != nil && a.Exit != nil {
		t.ends = append(t.ends, a.Exit.Class)
	}
	switch {
	case was.Ended:
		s.Breakf("5: %s changes %s, which is over", p, t.id)
	case is.Fence < was.Fence:
		s.Breakf("4: the fence of %s falls from %d to %d", t.id, was.Fence, is.Fence)
	case is.Fence == was.Fence && before.Phase != task.Stopping && before.Owner.PID != 0 && !p.is(before.Owner):
		s.onForeign(p, before, after)
	}
	handed := p.is(before.Owner) || p.from == before.Owner && after.Owner == p.owner()
	if before.Owner != after.Owner && before.Held() && !handed {
		s.onTaken(p, before, after)
	}
	for i, a := range before.Attempts {
		if !a.NeverMade && after.Attempts[i].NeverMade && slices.ContainsFunc(s.boxes, func(b *box) bool { return b.nonce == a.Nonce }) {
			s.Breakf("5: it is written that the create of attempt %d of %s had no effect, and it made a sandbox", a.N, after.ID)
		}
		if a.GoneAt.IsZero() && !after.Attempts[i].GoneAt.IsZero() {
			s.onGone(after.Attempts[i], t)
		}
	}
	if len(after.Attempts) > len(before.Attempts) {
		s.onAttempt(p, before, after)
	}
	if before.Phase != task.Publishing && after.Phase == task.Publishing {
		s.onGate(t, before, after)
	}
	if after.Phase == task.Stopping && before.Phase != task.Stopping && after.Publish.State != task.PublishDone && after.Publish.State != task.PublishUnknown {
		t.closed = string(after.Verdict)
		if t.published > 0 {
			s.Breakf("1: %s is decided to be %s, and is public", t.id, after.Verdict)
		}
	}
	if before.StopAt.IsZero() && !after.StopAt.IsZero() {
		t.stopped = time.Now()
	}
	if is.Ended && !was.Ended {
		s.onOver(t, after)
	}
	s.onReserved(t, is)
}

// tell adds a change to the trace.
func (s *sim) tell(p *proc, before, after task.Task) {
	for _, n := range after.Notes[min(len(before.Notes), len(after.Notes)):] {
		s.Logf("%s: %s fence %d: %s %s", p, after.ID, after.Fence, n.Event, n.Detail)
	}
}

// onForeign checks that a process without the task changes only facts.
func (s *sim) onForeign(p *proc, before, after task.Task) {
	strip := func(t task.Task) task.Task {
		t.Notes, t.ReadAt = nil, time.Time{}
		t.Attempts = slices.Clone(t.Attempts)
		for i := range t.Attempts {
			a := &t.Attempts[i]
			a.Sandbox, a.Settled, a.NeverMade, a.GoneAt, a.Gone, a.EndedAt, a.EndRequest = "", false, false, time.Time{}, "", time.Time{}, nil
		}
		if t.Branch != nil {
			t.Branch = &task.MadeBranch{Target: t.Branch.Target, At: t.Branch.At}
		}
		return t
	}
	a, b := strip(before), strip(after)
	if !reflect.DeepEqual(a, b) {
		s.Breakf("4: %s changes %s, which is %d's (phase %q, state %s -> %q, %s)", p, after.ID, before.Owner.PID, before.Phase, before.State, after.Phase, after.State)
	}
}

// onTaken checks that the owner of a task that was taken over is dead.
func (s *sim) onTaken(p *proc, before, after task.Task) {
	for _, other := range s.procs {
		if other.is(before.Owner) && !other.dead && !other.done && !s.jumps {
			s.Breakf("3: %s takes %s from %s, which holds it and lives", p, after.ID, other)
		}
	}
}

// onGone checks that nothing of an attempt is left.
func (s *sim) onGone(a task.Attempt, t *truth) {
	for _, b := range s.living(t.id) {
		if b.nonce == a.Nonce && (!b.stray || a.Sandbox == b.id) {
			s.Breakf("5: attempt %d of %s is gone, and %s lives", a.N, t.id, b)
		}
	}
	s.onLeft(a, t.id)
}

func (s *sim) onAttempt(p *proc, before, after task.Task) {
	counted := before.Counted()
	switch {
	case !before.StopAt.IsZero() || before.Phase != task.Working:
		s.Breakf("6: attempt %d of %s begins after its end was decided", len(after.Attempts), after.ID)
	case counted >= before.Spec.Attempts:
		s.Breakf("6: attempt %d of %s begins, and %d were allowed", len(after.Attempts), after.ID, before.Spec.Attempts)
	}
	for _, b := range s.living(after.ID) {
		if b.stray {
			continue
		}
		s.Breakf("6: %s begins attempt %d while %s of %s still lives", p, len(after.Attempts), b, b.by)
	}
}

func (s *sim) onGate(t *truth, before, after task.Task) {
	a := before.Last()
	switch {
	case !before.StopAt.IsZero():
		s.Breakf("1: %s passes the gate after a stop", after.ID)
	case before.Phase != task.Working:
		s.Breakf("3: %s passes the gate after its end was decided", after.ID)
	case a == nil || a.Exit == nil || a.Exit.Class != sandbox.ClassOK || a.Expired != "":
		s.Breakf("3: %s passes the gate without success", after.ID)
	case !before.DeadlineAt.IsZero() && !after.ReadAt.Before(before.DeadlineAt):
		t.closed = "late" // judged in time and written late: its writer has to notice that
	}
}

// onOver checks a task's end against the true state.
func (s *sim) onOver(t *truth, after task.Task) {
	t.over = true
	s.Logf("%s is over: %s (%s)", t.id, after.State, after.Publish.State)
	for _, b := range s.living(t.id) {
		if b.stray {
			continue
		}
		if after.Kept == nil || after.Kept.Ref.ID != b.id {
			s.Breakf("5: %s is %s while %s lives", t.id, after.State, b)
		}
	}
	if after.State == task.Completed {
		a := after.Last()
		if b := s.find(a.Sandbox); b == nil || b.prog.exit != sandbox.ClassOK {
			s.Breakf("3: %s is completed, and its program did not succeed", t.id)
		}
		if after.Spec.Publishes() && after.Publish.State != task.PublishDone && after.Publish.State != task.PublishNothing {
			s.Breakf("3: %s is completed, and its publication is %q", t.id, after.Publish.State)
		}
	}
	if s.branches[t.id] == "made" {
		s.Breakf("12: %s is %s, its publication is %q, and the branch that was made for it is left", t.id, after.State, after.Publish.State)
	}
	for _, a := range after.Attempts {
		if b := s.find(a.Sandbox); a.Exit != nil && b != nil && (a.Exit.Class == sandbox.ClassOOM) && b.prog.exit != sandbox.ClassOOM {
			s.Breakf("9: attempt %d of %s ran out of memory, by the report alone", a.N, t.id)
		}
	}
	switch done := after.Publish.State == task.PublishDone; {
	case done && t.published != 1:
		s.Breakf("2: %s says that it is public, and was published %d times", t.id, t.published)
	case !done && after.Publish.State != task.PublishUnknown && t.published != 0:
		s.Breakf("2: %s was published, and says %q", t.id, after.Publish.State)
	}
}

// onReserved compares a reservation with the existing boxes.
func (s *sim) onReserved(t *truth, row store.Task) {
	need := int64(0)
	for _, b := range s.living(t.id) {
		need = max(need, b.memoryMB)
	}
	sum := int64(0)
	rows, _ := s.mem.Tasks(context.Background(), store.TaskQuery{Live: true})
	for _, r := range rows {
		sum += r.ReserveMB
	}
	switch {
	case sum > limitMB:
		s.Breakf("10: %d MB are reserved after a change of %s, of %d", sum, t.id, limitMB)
	case row.Ended && row.ReserveMB != 0:
		s.Breakf("10: %s is over and holds %d MB", t.id, row.ReserveMB)
	case !row.Ended && row.ReserveMB < need:
		s.Breakf("10: %s holds %d MB and its sandbox %d", t.id, row.ReserveMB, need)
	}
}

// living are the sandboxes of a task that really run.
func (s *sim) living(id string) []*box {
	var all []*box
	for _, b := range s.boxes {
		if b.task == id && b.alive(time.Now()) {
			all = append(all, b)
		}
	}
	return all
}

// onMade checks a create when it takes effect.
func (s *sim) onMade(b *box) {
	t := s.tasks[b.task]
	k, found := s.kept(t.id)
	// No rule can stop a process that was frozen between its last check and its request,
	// and none waits long enough by a clock that jumps: such a sandbox is late, and its
	// maker or its own lifetime ends it.
	stalled := false
	for _, a := range k.Attempts {
		if a.Nonce == b.nonce && !a.CutAt.IsZero() {
			stalled = !b.by.froze.IsZero() || s.jump.Load() != 0 || s.jumps
		}
	}
	b.stray = stalled
	s.onStart(t)
	for _, a := range k.Attempts {
		if a.Nonce == b.nonce && a.NeverMade {
			s.Breakf("5: %s is made after it was written that the create of attempt %d had no effect", b, a.N)
		}
	}
	if t.over && !stalled {
		s.Breakf("5: %s is made after the end of %s", b, t.id)
	}
	if found && !stalled {
		for _, a := range k.Attempts {
			if a.Nonce == b.nonce && !a.GoneAt.IsZero() {
				s.Breakf("5: %s is made after it was written that attempt %d has left nothing", b, a.N)
			}
		}
	}
	for _, other := range s.living(t.id) {
		if other != b && !stalled && !other.asked && !other.stray {
			s.Breakf("6: %s is made while %s lives", b, other)
		}
	}
}

// onCreate checks a request for a box when it is sent.
func (s *sim) onCreate(p *proc, id string) {
	k, found := s.kept(id)
	if found && !k.DeadlineAt.IsZero() && k.ReadAt.Sub(k.DeadlineAt) > 5*time.Second && p.froze.IsZero() && !s.jumps {
		s.Breakf("6: %s asks for a sandbox %s after the deadline of %s", p, k.ReadAt.Sub(k.DeadlineAt), id)
	}
}

// onDone checks that a process that ends regularly leaves nothing that only it knows of.
func (s *sim) onDone(p *proc) {
	for _, b := range s.boxes {
		if b.by != p || !b.answered || !b.alive(time.Now()) {
			continue
		}
		k, _ := s.kept(b.task)
		known := k.Kept != nil && k.Kept.Ref.ID == b.id
		for _, a := range k.Attempts {
			known = known || a.Sandbox == b.id && a.GoneAt.IsZero()
		}
		if !known {
			s.Breakf("5: %s leaves %s behind, which nobody knows of", p, b)
		}
	}
}

// onAsked checks a request to end a box.
func (s *sim) onAsked(p *proc, b *box) {
	s.Logf("%s asks for the end of %s", p, b)
	t, found := s.kept(b.task)
	if !found {
		return
	}
	a := t.Last()
	if t.Kept != nil && t.Kept.Ref.ID == b.id && (p.task == b.task || p.task == "") {
		s.Breakf("5: %s ends %s, which is kept", p, b)
	}
	if !t.State.Final() && t.Phase == task.Working && a != nil && a.Sandbox == b.id && a.Exit == nil && a.Expired == "" && !p.is(t.Owner) && s.lives(t.Owner) {
		s.Breakf("4: %s ends %s, at which %d works", p, b, t.Owner.PID)
	}
	// A sandbox that a frozen runner made too late, for an earlier attempt, is its own to
	// end.
	if t.Phase == task.Publishing && a != nil && a.Sandbox == b.id {
		s.Breakf("4: %s ends %s, which is being published", p, b)
	}
}

// lives reports whether the process of an owner has not ended.
func (s *sim) lives(o task.Owner) bool {
	return slices.ContainsFunc(s.procs, func(p *proc) bool { return p.is(o) && !p.dead && !p.done })
}

// onPublished checks a change of the branch.
func (s *sim) onPublished(p *proc, id string) {
	t := s.tasks[id]
	t.published++
	s.Logf("%s publishes %s", p, id)
	if s.branches[id] == "made" {
		s.branches[id] = "moved"
	}
	switch {
	case t.published > 1:
		s.Breakf("2: %s is published %d times", id, t.published)
	case t.acked:
		s.Breakf("1: %s is published after a stop was acknowledged", id)
	case t.closed != "":
		s.Breakf("1: %s is published after it was decided to be %s", id, t.closed)
	}
}

// onBranch checks that a branch is made when it takes effect.
func (s *sim) onBranch(p *proc, id string) {
	s.Logf("%s makes the branch of %s", p, id)
	if s.tasks[id].over {
		s.Breakf("12: %s makes the branch of %s, which is over", p, id)
	}
}

// onStop checks the result of a stop.
func (s *sim) onStop(p *proc, id string, early bool) {
	t := s.tasks[id]
	if early {
		s.Logf("%s: %s will not be published", p, id)
		if t.acked = true; t.published > 0 {
			s.Breakf("1: a stop of %s is acknowledged, and it is public", id)
		}
		return
	}
	s.Logf("%s: %s is public already", p, id)
	if t.refused = true; t.published == 0 {
		s.Breakf("3: a stop of %s says that it is public, and it is not", id)
	}
}

// onTold checks what a breaker is told.
func (s *sim) onTold(p *proc, class sandbox.Class) {
	if class == "" || p.dead {
		return
	}
	// A slow process may report an end that was true when it was written: a limit that
	// another process saw has replaced it since.
	if t := s.tasks[p.task]; t != nil && !slices.Contains(t.ends, class) {
		s.Breakf("11: %s tells the breaker of %q, and %s never had such an end", p, class, t.id)
	}
}
