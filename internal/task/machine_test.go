package task

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/sandbox"
)

func noon() time.Time { return time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC) }

var (
	ann = Owner{Host: "h1", PID: 1, Who: "ann"}
	bob = Owner{Host: "h2", PID: 2, Who: "bob"}
)

// Example tasks, by progress.
func pending() Task {
	return Task{ID: "t-1", State: Pending, CreatedAt: noon(), ReadAt: noon(), Spec: Spec{
		Provider: "p", Attempts: 3, Delay: 6 * time.Second, Limits: Limits{Deadline: time.Hour},
	}}
}

func after(t Task, rules ...func(*Task) error) Task {
	for _, rule := range rules {
		if err := rule(&t); err != nil {
			panic(err)
		}
	}
	return t
}

func assigns(t *Task) error { return t.Assign(ann, Attempt{Provider: "p", Nonce: "n"}) }
func creates(t *Task) error { return t.Created(t.Fence, sandbox.Sandbox{Provider: "p", ID: "s"}) }
func succeeds(t *Task) error {
	return t.End(t.Fence, Ended{Exit: sandbox.Exit{Class: sandbox.ClassOK}})
}

func crashes(t *Task) error {
	return t.End(t.Fence, Ended{Exit: sandbox.Exit{Class: sandbox.ClassCrash}})
}
func passes(t *Task) error { return t.PassGate(t.Fence, Publish{}) }
func stops(t *Task) error  { return t.Stop("bob") }
func isGone(t *Task) error { return t.Gone(len(t.Attempts), "verified") }
func again2(t *Task) error { return t.ScheduleRetry(t.Fence, Retry{Again: true}) }
func finishes(t *Task) error {
	return t.Finish()
}

func assigned() Task   { return after(pending(), assigns) }
func running() Task    { return after(assigned(), creates) }
func ended() Task      { return after(running(), crashes) }
func succeeded() Task  { return after(running(), succeeds) }
func publishing() Task { return after(succeeded(), passes) }
func stopping() Task   { return after(running(), stops) }
func waiting() Task    { return after(ended(), isGone, again2) }
func over() Task       { return after(stopping(), isGone, finishes) }
func doubtful() Task {
	return after(publishing(), func(t *Task) error { return t.EndPublication(t.Fence, Publish{State: PublishUnknown}, Failed) })
}

func public() Task {
	return after(publishing(), func(t *Task) error { return t.EndPublication(t.Fence, Publish{State: PublishDone}, Completed) })
}

// TestTransitions checks for every rule in which states it holds, and its errors elsewhere.
func TestTransitions(t *testing.T) {
	t.Parallel()
	late := func(from Task) Task { from.ReadAt = noon().Add(2 * time.Hour); return from }
	lapsed := func(from Task) Task { from.ReadAt = noon().Add(time.Minute); return from }
	fence := func(rule func(*Task, int64) error) func(*Task) error {
		return func(t *Task) error { return rule(t, t.Fence) }
	}
	stale := func(rule func(*Task, int64) error) func(*Task) error {
		return func(t *Task) error { return rule(t, t.Fence-1) }
	}
	end := func(t *Task, f int64) error { return t.End(f, Ended{Exit: sandbox.Exit{Class: sandbox.ClassOK}}) }
	expire := func(t *Task, f int64) error { return t.Expire(f, ReasonCommand) }
	conclude := func(t *Task, f int64) error { return t.Conclude(f, Failed, ReasonNone, "") }
	settle := func(t *Task, f int64) error { return t.EndPublication(f, Publish{State: PublishDone}, Completed) }
	renew := func(t *Task, f int64) error { return t.Renew(f) }
	leave := func(t *Task, f int64) error { return t.ReleaseLease(f) }
	pass := func(t *Task, f int64) error { return t.PassGate(f, Publish{}) }
	retry := func(t *Task, f int64) error { return t.ScheduleRetry(f, Retry{Again: true}) }
	created := func(t *Task, f int64) error { return t.Created(f, sandbox.Sandbox{ID: "x"}) }
	keep := func(t *Task, f int64) error { return t.Keep(f, noon()) }
	bobs := func(t *Task) error { return t.Assign(bob, Attempt{}) }
	for name, c := range map[string]struct {
		from Task
		rule func(*Task) error
		want error
	}{
		"assign pending":                {pending(), assigns, nil},
		"assign waiting":                {waiting(), assigns, nil},
		"assign of another":             {waiting(), bobs, ErrHeld},
		"assign of another, later":      {lapsed(waiting()), bobs, nil},
		"assign assigned":               {assigned(), assigns, ErrNotOwner},
		"assign running":                {running(), assigns, ErrNotOwner},
		"assign stopping":               {stopping(), assigns, ErrNotOwner},
		"assign over":                   {over(), assigns, ErrFinal},
		"assign late":                   {late(waiting()), assigns, ErrLate},
		"assign spent":                  {func() Task { w := waiting(); w.Spec.Attempts = 1; return w }(), assigns, ErrAttemptsUsed},
		"assign beside":                 {after(waiting(), func(t *Task) error { t.Attempts[0].GoneAt = time.Time{}; return nil }), assigns, ErrNotGone},
		"created":                       {assigned(), creates, nil},
		"created stale":                 {assigned(), stale(created), ErrNotOwner},
		"created twice":                 {running(), creates, ErrNotOwner},
		"created stopped":               {after(assigned(), stops), creates, ErrNotOwner},
		"created over":                  {over(), creates, ErrFinal},
		"end":                           {running(), fence(end), nil},
		"end stale":                     {running(), stale(end), ErrNotOwner},
		"end pending":                   {pending(), fence(end), ErrNotOwner},
		"end waiting":                   {waiting(), fence(end), ErrNotOwner},
		"end stopping":                  {stopping(), fence(end), ErrNotOwner},
		"expire":                        {running(), fence(expire), nil},
		"expire stale":                  {running(), stale(expire), ErrNotOwner},
		"expire publishing":             {publishing(), fence(expire), ErrNotOwner},
		"expire stopping":               {stopping(), fence(expire), ErrNotOwner},
		"again":                         {after(ended(), isGone), fence(retry), nil},
		"again before it is gone":       {ended(), fence(retry), ErrNotGone},
		"again while it runs":           {running(), fence(retry), ErrNotOwner},
		"again twice":                   {waiting(), fence(retry), ErrNotOwner},
		"again stale":                   {after(ended(), isGone), stale(retry), ErrNotOwner},
		"pass":                          {succeeded(), fence(pass), nil},
		"pass stale":                    {succeeded(), stale(pass), ErrNotOwner},
		"pass stopped":                  {after(succeeded(), stops), fence(pass), ErrNotOwner},
		"pass with a stop asked for":    {after(succeeded(), func(t *Task) error { t.StopAt = noon(); return nil }), fence(pass), ErrStopped},
		"pass late":                     {late(succeeded()), fence(pass), ErrLate},
		"pass failed":                   {ended(), fence(pass), ErrNotOwner},
		"pass running":                  {running(), fence(pass), ErrNotOwner},
		"pass expired":                  {after(succeeded(), fence(expire)), fence(pass), ErrNotOwner},
		"pass twice":                    {publishing(), fence(pass), ErrNotOwner},
		"settle":                        {publishing(), fence(settle), nil},
		"settle stale":                  {publishing(), stale(settle), ErrNotOwner},
		"settle what did not pass":      {succeeded(), fence(settle), ErrNotOwner},
		"settle twice":                  {public(), fence(settle), ErrNotOwner},
		"conclude":                      {ended(), fence(conclude), nil},
		"conclude stale":                {ended(), stale(conclude), ErrNotOwner},
		"conclude publishing":           {publishing(), fence(conclude), ErrNotOwner},
		"conclude over":                 {over(), fence(conclude), ErrFinal},
		"stop pending":                  {pending(), stops, nil},
		"stop running":                  {running(), stops, nil},
		"stop waiting":                  {waiting(), stops, nil},
		"stop publishing":               {publishing(), stops, ErrPublishing},
		"stop public":                   {public(), stops, ErrPublished},
		"stop in doubt":                 {doubtful(), stops, ErrPublicationUnknown},
		"stop public, over":             {after(public(), isGone, finishes), stops, ErrPublished},
		"stop in doubt, over":           {after(doubtful(), isGone, finishes), stops, ErrPublicationUnknown},
		"stop twice":                    {stopping(), stops, errUnchanged},
		"stop over":                     {over(), stops, ErrFinal},
		"poison":                        {publishing(), func(t *Task) error { return t.StopAfterRefusal("bob") }, nil},
		"poison running":                {running(), func(t *Task) error { return t.StopAfterRefusal("bob") }, ErrNotOwner},
		"poison public":                 {public(), func(t *Task) error { return t.StopAfterRefusal("bob") }, ErrNotOwner},
		"poison over":                   {over(), func(t *Task) error { return t.StopAfterRefusal("bob") }, ErrFinal},
		"renew":                         {running(), fence(renew), nil},
		"renew stale":                   {running(), stale(renew), ErrNotOwner},
		"renew over":                    {over(), fence(renew), ErrFinal},
		"leave":                         {running(), fence(leave), nil},
		"leave stale":                   {running(), stale(leave), ErrNotOwner},
		"adopt held":                    {running(), func(t *Task) error { return t.Adopt(bob, false) }, ErrHeld},
		"adopt dead":                    {running(), func(t *Task) error { return t.Adopt(bob, true) }, nil},
		"adopt lapsed":                  {lapsed(running()), func(t *Task) error { return t.Adopt(bob, false) }, nil},
		"adopt left":                    {after(running(), fence(leave)), func(t *Task) error { return t.Adopt(bob, false) }, nil},
		"adopt over":                    {over(), func(t *Task) error { return t.Adopt(bob, true) }, ErrFinal},
		"hold pending":                  {pending(), func(t *Task) error { return t.Acquire(bob) }, nil},
		"hold one's own":                {running(), func(t *Task) error { return t.Acquire(ann) }, errUnchanged},
		"hold another's":                {running(), func(t *Task) error { return t.Acquire(bob) }, ErrHeld},
		"hold a lapsed one":             {lapsed(running()), func(t *Task) error { return t.Acquire(bob) }, nil},
		"hold a decided one":            {stopping(), func(t *Task) error { return t.Acquire(bob) }, errUnchanged},
		"hold over":                     {over(), func(t *Task) error { return t.Acquire(bob) }, ErrFinal},
		"wait":                          {pending(), func(t *Task) error { return t.Wait("memory_budget") }, nil},
		"wait as before":                {waiting(), func(t *Task) error { return t.Wait("retry") }, errUnchanged},
		"wait running":                  {running(), func(t *Task) error { return t.Wait("retry") }, ErrNotOwner},
		"found":                         {after(assigned(), stops), func(t *Task) error { return t.Found(1, "s") }, nil},
		"found again":                   {running(), func(t *Task) error { return t.Found(1, "s") }, errUnchanged},
		"found of no attempt":           {running(), func(t *Task) error { return t.Found(2, "s") }, ErrNotOwner},
		"found over":                    {over(), func(t *Task) error { return t.Found(1, "s") }, ErrFinal},
		"gone":                          {stopping(), isGone, nil},
		"gone again":                    {after(stopping(), isGone), isGone, errUnchanged},
		"gone over":                     {over(), isGone, ErrFinal},
		"finish":                        {after(stopping(), isGone), finishes, nil},
		"finish with something left":    {stopping(), finishes, ErrNotGone},
		"finish undecided":              {running(), finishes, ErrNotOwner},
		"finish over":                   {over(), finishes, ErrFinal},
		"keep":                          {public(), fence(keep), nil},
		"keep of a failure":             {after(ended(), fence(conclude)), fence(keep), ErrNotOwner},
		"keep of what is gone":          {after(public(), isGone), fence(keep), ErrNotOwner},
		"keep while it runs":            {running(), fence(keep), ErrNotOwner},
		"resume":                        {after(pending(), func(t *Task) error { return t.Assign(ann, Attempt{Reused: true, Sandbox: "k"}) }), func(t *Task) error { return t.Started(t.Fence) }, nil},
		"resume of what was made":       {assigned(), func(t *Task) error { return t.Started(t.Fence) }, ErrNotOwner},
		"resume of what runs":           {running(), func(t *Task) error { return t.Started(t.Fence) }, ErrNotOwner},
		"resume with an outdated fence": {after(pending(), func(t *Task) error { return t.Assign(ann, Attempt{Reused: true, Sandbox: "k"}) }), func(t *Task) error { return t.Started(t.Fence - 1) }, ErrNotOwner},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := c.from
			now.Attempts = append([]Attempt(nil), c.from.Attempts...)
			err := c.rule(&now)
			if c.want == nil {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, c.want)
			assert.Equal(t, c.from, now, "a refusal changes nothing")
		})
	}
}

// TestFencesThatGrow checks which changes end the right of the earlier owner.
func TestFencesThatGrow(t *testing.T) {
	t.Parallel()
	for name, rule := range map[string]func(*Task) error{
		"stop": stops, "expire": func(t *Task) error { return t.Expire(t.Fence, ReasonCommand) },
		"adopt": func(t *Task) error { return t.Adopt(bob, true) },
	} {
		assert.Equal(t, running().Fence+1, after(running(), rule).Fence, name)
	}
	poisoned := after(publishing(), func(t *Task) error { return t.StopAfterRefusal("bob") })
	assert.Equal(t, publishing().Fence+1, poisoned.Fence)
	assert.Equal(t, waiting().Fence+1, after(waiting(), assigns).Fence)
	assert.Equal(t, pending().Fence+1, after(pending(), func(t *Task) error { return t.Acquire(ann) }).Fence)
}

// TestReservations checks when a task reserves memory of its budget.
func TestReservations(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		task Task
		want int64
	}{
		"pending": {pending(), 0}, "stopped before it began": {after(pending(), stops), 0}, "assigned": {assigned(), 64},
		"running": {running(), 64}, "waiting": {waiting(), 64}, "waiting for more": {after(waiting(), func(t *Task) error { return t.Wait(waitsForBudget) }), 0}, "stopping": {stopping(), 64}, "over": {over(), 0},
	} {
		c.task.Spec.MemoryBytes = 64 * sandbox.MiB
		assert.Equal(t, c.want, c.task.reservedMB(), name)
	}
	grown := after(waiting(), func(t *Task) error { return t.Assign(ann, Attempt{MemoryMB: 128}) })
	assert.EqualValues(t, 128, grown.reservedMB())
}

func TestWhatTurnsUpLateHasToGo(t *testing.T) {
	t.Parallel()
	now := after(assigned(), stops, isGone, func(t *Task) error { return t.Found(1, "late") })
	assert.False(t, now.AllGone())
	require.ErrorIs(t, now.Finish(), ErrNotGone)
}

func TestTheRightToCreateIsCutOnce(t *testing.T) {
	t.Parallel()
	now := after(assigned(), stops)
	cut := now.Last().CutAt
	assert.Equal(t, noon(), cut)
	now.ReadAt = noon().Add(time.Hour)
	require.NoError(t, now.Adopt(bob, true))
	assert.Equal(t, cut, now.Last().CutAt)
	assert.False(t, now.Last().Dead, "it was cut while it may have lived")
	stopped := stopping()
	assert.True(t, stopped.Last().CutAt.IsZero(), "what was made is known")
}

// TestADeadMakerGetsNoGrace: a requester known to be dead requests nothing any more; one
// that may live has a lease to notice that it lost the task.
func TestADeadMakerGetsNoGrace(t *testing.T) {
	t.Parallel()
	r := NewRunner(Options{SettleTime: func(string) time.Duration { return 3 * time.Second }}, nil, nil)
	for _, c := range []struct {
		name    string
		dead    bool
		settled time.Duration
	}{{"dead", true, 3 * time.Second}, {"perhaps alive", false, 3*time.Second + LeaseFor + RenewEvery}} {
		now := assigned()
		now.ReadAt = now.LeaseUntil
		require.NoError(t, now.Adopt(bob, c.dead), c.name)
		assert.Equal(t, c.dead, now.Last().Dead, c.name)
		cut := now.ReadAt
		now.ReadAt = cut.Add(c.settled - time.Millisecond)
		assert.False(t, r.createSettled(*now.Last(), now), c.name)
		now.ReadAt = cut.Add(c.settled)
		assert.True(t, r.createSettled(*now.Last(), now), c.name)
	}
}

// TestRandomLives applies random rules with random fences at random times, and checks a
// task's invariants after each.
func TestRandomLives(t *testing.T) {
	t.Parallel()
	for seed := range uint64(800) {
		life(t, rand.New(rand.NewPCG(seed, 1)))
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func life(t *testing.T, r *rand.Rand) {
	t.Helper()
	now := pending()
	now.Spec.Attempts = 1 + r.IntN(3)
	now.Spec.Limits.Deadline = []time.Duration{0, time.Minute, time.Hour}[r.IntN(3)]
	published, promised := 0, false
	for range 60 {
		now.ReadAt = now.ReadAt.Add(time.Duration(r.ExpFloat64() * float64(4*time.Second)))
		before := copied(now)
		fence := now.Fence - int64(r.IntN(4)/3)
		name, err := step(&now, r, fence)
		now.needsAdmission = false
		if err != nil {
			assert.Equal(t, before.plain(), now.plain(), "%s refuses with %v and changes it", name, err)
		}
		if name == "stop" && err == nil {
			promised = true
		}
		if name == "pass" && err == nil {
			published++
			assert.False(t, promised, "it passes after a stop")
		}
		fits(t, name, before, now, err, fence)
		assert.LessOrEqual(t, published, 1, "it passes twice")
		if promised {
			late := copied(now)
			require.Error(t, late.PassGate(late.Fence, Publish{}), "a stop was promised, and the gate is open")
		}
		if t.Failed() {
			return
		}
	}
}

// fits checks what must hold of every change.
func fits(t *testing.T, name string, before, now Task, err error, fence int64) {
	t.Helper()
	assert.GreaterOrEqual(t, now.Fence, before.Fence, name)
	if before.State.Final() {
		assert.Equal(t, before.plain(), now.plain(), "%s changes what is over", name)
		require.Error(t, err, name)
	}
	if now.State.Final() {
		assert.True(t, now.AllGone(), "%s ends it with something left", name)
		assert.Zero(t, now.reservedMB())
	}
	if len(now.Attempts) > len(before.Attempts) {
		assert.True(t, before.StopAt.IsZero() && before.Phase == Working, "an attempt begins after its end was decided")
		assert.False(t, before.pastDeadline(), "an attempt begins late")
		assert.Less(t, before.Counted(), before.Spec.Attempts, "too many attempts")
		assert.True(t, before.AllGone(), "an attempt begins beside another")
	}
	if needsFence(name) && fence != before.Fence {
		require.Error(t, err, "%s goes by with an old fence", name)
	}
}

func needsFence(name string) bool {
	switch name {
	case "assign", "adopt", "hold", "wait", "stop", "poison", "found", "gone", "finish":
		return false
	}
	return true
}

// plain is a task without the fields that every read sets.
func (t Task) plain() Task { t.ReadAt = time.Time{}; return t }

// copied is a deep copy of a task.
func copied(from Task) Task {
	from.Attempts, from.Notes = slices.Clone(from.Attempts), slices.Clone(from.Notes)
	return from
}

func step(t *Task, r *rand.Rand, fence int64) (string, error) {
	classes := []sandbox.Class{sandbox.ClassOK, sandbox.ClassOK, sandbox.ClassCrash, sandbox.ClassInfra, sandbox.ClassOOM}
	owner := []Owner{ann, bob}[r.IntN(2)]
	switch n := r.IntN(40); {
	case n < 6:
		return "assign", t.Assign(owner, Attempt{Provider: "p", Nonce: "n", MemoryMB: 64})
	case n < 11:
		return "created", t.Created(fence, sandbox.Sandbox{Provider: "p", ID: "s" + strconv.Itoa(len(t.Attempts))})
	case n < 16:
		return "end", t.End(fence, Ended{Exit: sandbox.Exit{Class: classes[r.IntN(len(classes))]}})
	case n < 17:
		return "expire", t.Expire(fence, ReasonCommand)
	case n < 21:
		return "gone", t.recordGone(1+r.IntN(3), "verified")
	case n < 25:
		return "again", t.ScheduleRetry(fence, Retry{Again: true, Free: r.IntN(3) == 0})
	case n < 28:
		return "pass", t.PassGate(fence, Publish{})
	case n < 30:
		if r.IntN(2) == 0 {
			return "settle", t.EndPublication(fence, Publish{State: PublishDone}, Completed)
		}
		return "settle", t.EndPublication(fence, Publish{State: PublishRefused}, Failed)
	case n < 31:
		return "conclude", t.Conclude(fence, Failed, ReasonNone, "")
	case n < 32:
		return "stop", t.Stop("bob")
	case n < 33:
		return "poison", t.StopAfterRefusal("bob")
	case n < 34:
		return "renew", t.Renew(fence)
	case n < 35:
		return "adopt", t.Adopt(owner, r.IntN(2) == 0)
	case n < 36:
		return "hold", t.Acquire(owner)
	case n < 37:
		return "wait", t.Wait("memory_budget")
	case n < 38:
		return "found", t.Found(1+r.IntN(3), "late")
	case n < 39:
		return "keep", t.Keep(fence, t.ReadAt)
	}
	return "finish", t.Finish()
}

// TestAnAttemptWhoseSandboxIsFoundCounts: it was repeated without being counted, since no sandbox of it was known.
func TestAnAttemptWhoseSandboxIsFoundCounts(t *testing.T) {
	t.Parallel()
	w := waiting()
	w.Spec.Attempts = 1
	w.Attempts[0].Sandbox, w.Attempts[0].Retry = "", &Retry{Again: true, Free: true}
	assert.Zero(t, w.Counted())
	require.NoError(t, w.Found(1, "b1"))
	assert.Equal(t, 1, w.Counted())
	require.NoError(t, w.Gone(1, "verified"))
	require.ErrorIs(t, assigns(&w), ErrAttemptsUsed)
}
