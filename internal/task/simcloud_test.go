package task_test

import (
	"context"
	"fmt"
	"iter"
	"strconv"
	"time"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/schedule"
)

// box is the true state of a sandbox.
type box struct {
	id, nonce, task string
	by              *proc
	made, listed    time.Time
	ttl             time.Time
	ended           time.Time // zero = it lives
	how             string
	asked           bool
	memoryMB        int64
	keepAfterExit   bool
	ends            time.Duration // from the request to the end
	answered        bool          // the requester got the answer
	stray           bool          // it was made when its requester had given up
	liar            int           // how many requests to end are answered and ignored
	deleted         bool          // or is to be, with its end: no record of it is left (sim.leaves)
	prog            program
}

// program is what runs in a box.
type program struct {
	length time.Duration // forever = it hangs
	talks  time.Duration // between two lines; 0 = no output
	agent  bool          // its lines are messages of an agent
	exit   sandbox.Class // ok, agent_error, killed_unknown, oom; gone = its box vanishes
}

func (p program) line(n int) string {
	if p.agent {
		return `{"type":"assistant","session_id":"s-1"}`
	}
	return "line " + strconv.Itoa(n)
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

const forever = 1000 * time.Hour

func (b *box) settle(now time.Time) {
	end := func(at time.Time, how string) {
		if !now.Before(at) && (b.ended.IsZero() || at.Before(b.ended)) {
			b.ended, b.how = at, how
		}
	}
	over := b.made.Add(b.prog.length)
	switch {
	case b.prog.exit == sandbox.ClassGone:
		end(over, "vanished")
	case !b.keepAfterExit:
		end(over, "exit")
	}
	end(b.ttl, "ttl")
}

func (b *box) alive(now time.Time) bool {
	b.settle(now)
	return b.ended.IsZero() || now.Before(b.ended)
}

// over reports whether its program ended before the box did.
func (b *box) over(now time.Time) bool {
	b.settle(now)
	at := b.made.Add(b.prog.length)
	return !now.Before(at) && b.prog.exit != sandbox.ClassGone && (b.ended.IsZero() || !at.After(b.ended))
}

func (b *box) String() string { return b.id + " of " + b.task }

func (s *sim) find(id string) *box {
	for _, b := range s.boxes {
		if b.id == id {
			return b
		}
	}
	return nil
}

// cloud is one process's connection to the provider.
type cloud struct{ p *proc }

// The times behind Options.SettleTime: how late a create may take effect, and how long the
// listing may lack its sandbox.
const (
	laggards = 35 * time.Second
	unlisted = 4 * time.Second
)

// Create makes a box; some are made after the requester has given up.
func (c cloud) Create(ctx context.Context, profile string, spec sandbox.Spec) (sandbox.Sandbox, error) {
	s := c.p.s
	var made *box
	var refused error
	says := ""
	s.mu.Lock()
	s.onCreate(c.p, spec.TaskID)
	s.mu.Unlock()
	nonce := spec.Labels[sandbox.LabelNonce]
	laggard := !s.quiet && time.Since(s.Began) < chaos && s.Roll("laggard", nonce) < 0.1
	if !schedule.Sleep(ctx, time.Duration(s.Roll("prepares", nonce)*s.Roll("too", nonce)*float64(4*time.Second))) {
		return sandbox.Sandbox{}, ctx.Err()
	}
	err := c.p.call(ctx, "cloud", "create", func() {
		switch {
		case laggard:
			d := time.Duration(s.Roll("lags", nonce) * float64(laggards))
			s.Logf("the create of %s for %s will come %s late", spec.TaskID, c.p, d)
			s.afterwards(d, func() { s.make(c.p, spec) })
			return
		case !s.quiet && s.Roll("refuses", nonce) < 0.03:
			refused = fault.New(fault.KindRefused, "no room for it")
			return
		}
		made = s.make(c.p, spec)
		says = s.tells("answer", made, "create: twice", "create: lost")
		if s.copies || says == "create: twice" { // a proxy has sent the request twice
			second := *made
			second.id, second.keepAfterExit = made.id+"copy", true
			s.boxes = append(s.boxes, &second)
		}
	})
	switch {
	case err != nil:
		return sandbox.Sandbox{}, err
	case refused != nil:
		return sandbox.Sandbox{}, refused
	case made == nil, says == "create: lost":
		schedule.Sleep(ctx, time.Second)
		return sandbox.Sandbox{}, away("cloud")
	}
	s.mu.Lock()
	made.answered = true
	s.mu.Unlock()
	return sandbox.Sandbox{Provider: profile, ID: made.id, State: sandbox.StateRunning}, nil
}

// make makes every box. The lock is held.
func (s *sim) make(p *proc, spec sandbox.Spec) *box {
	now := time.Now()
	b := &box{
		id: fmt.Sprintf("b%d", len(s.boxes)+1), nonce: spec.Labels[sandbox.LabelNonce], task: spec.TaskID, by: p, made: now,
		ttl: now.Add(spec.TTL), memoryMB: spec.MemoryBytes / sandbox.MiB, keepAfterExit: spec.KeepAfterExit,
	}
	if !s.quiet {
		b.listed = now.Add(time.Duration(s.Roll("listed", b.nonce) * float64(unlisted)))
	}
	s.script(b)
	s.boxes = append(s.boxes, b)
	s.Logf("%s is made for %s: %s after %s", b, p, b.prog.exit, b.prog.length.Round(time.Millisecond))
	s.onMade(b)
	return b
}

func absent(id string) error { return fault.New(fault.KindGone, "%s has ended", id) }

func (c cloud) Get(ctx context.Context, ref sandbox.Ref) (sandbox.Sandbox, error) {
	return ask(ctx, c.p, "cloud", "get", func() (sandbox.Sandbox, error) { return c.p.s.record(ref) })
}

func (c cloud) Exit(ctx context.Context, ref sandbox.Ref) (*sandbox.Exit, error) {
	return ask(ctx, c.p, "cloud", "exit", func() (*sandbox.Exit, error) {
		b := c.p.s.find(ref.ID)
		unheard := c.p.s.unheard != nil && c.p.s.unheard(b)
		older, lied := c.p.s.insideOf(b)
		switch {
		case lied != nil:
			return nil, lied
		case older:
		case unheard:
			return nil, fault.New(fault.KindUnavailable, "no answer from inside").Inside()
		case b.over(time.Now()):
			return exitOf(b.prog.exit), nil
		case !b.alive(time.Now()):
			return nil, absent(ref.ID)
		}
		return nil, nil //nolint:nilnil // it is what the room's interface says: it runs
	})
}

func exitOf(class sandbox.Class) *sandbox.Exit {
	codes := map[sandbox.Class]int{sandbox.ClassOK: 0, sandbox.ClassAgentError: 1, sandbox.ClassKilledUnknown: 137, sandbox.ClassOOM: 137}
	code := codes[class]
	return &sandbox.Exit{Code: &code, Raw: strconv.Itoa(code), Class: class}
}

func (c cloud) Logs(ctx context.Context, ref sandbox.Ref, q providers.LogQuery) iter.Seq2[sandbox.LogLine, error] {
	return func(yield func(sandbox.LogLine, error) bool) {
		s := c.p.s
		var lied error
		if err := c.p.call(ctx, "cloud", "logs", func() { _, lied = s.insideOf(s.find(ref.ID)) }); err != nil {
			yield(sandbox.LogLine{}, err)
			return
		}
		if lied != nil {
			yield(sandbox.LogLine{}, lied)
			return
		}
		s.mu.Lock()
		b := s.find(ref.ID)
		s.mu.Unlock()
		end := b.made.Add(b.prog.length)
		if !q.Follow {
			for n, at := 1, b.made.Add(b.prog.talks); b.prog.talks > 0 && !at.After(end) && at.Before(time.Now()); n, at = n+1, at.Add(b.prog.talks) {
				if !yield(sandbox.LogLine{At: at, Text: b.prog.line(n)}, nil) {
					return
				}
			}
			return
		}
		if b.prog.talks == 0 {
			schedule.Sleep(ctx, time.Until(end))
			return
		}
		for n := 1; ; n++ {
			at := b.made.Add(time.Duration(n) * b.prog.talks)
			if at.Before(q.Since) {
				continue
			}
			if !schedule.Sleep(ctx, time.Until(earlier(at, end))) || c.p.gate("line") != nil {
				return
			}
			s.mu.Lock()
			silent := !b.alive(time.Now()) || b.over(time.Now())
			if last := end; silent { // earlier output can still be read
				if !b.ended.IsZero() && b.ended.Before(end) {
					last = b.ended
				}
				silent = at.After(last)
			}
			silent = silent || s.tells("inside", b, "cut") != ""
			s.mu.Unlock()
			if silent || !yield(sandbox.LogLine{At: at, Text: b.prog.line(n)}, nil) {
				return
			}
			if !s.quiet && s.lie.says != "cut" && s.Roll("cut", b.id, n, c.p.n) < 0.05 { // after each resumption again
				yield(sandbox.LogLine{}, away("cloud"))
				return
			}
		}
	}
}

func (c cloud) Exec(_ context.Context, _ sandbox.Ref, command providers.Command) (sandbox.Exit, error) {
	if c.p.s.execs != nil {
		return c.p.s.execs(command)
	}
	return sandbox.Exit{}, fault.New(fault.KindUnsupported, "no commands here")
}

func (c cloud) Probe(ctx context.Context, ref sandbox.Ref) (providers.Health, error) {
	switch {
	case c.p.s.probes != nil:
		return c.p.s.probes()
	case c.p.s.truthful():
		return providers.Health{}, fault.New(fault.KindUnsupported, "no probe here")
	}
	return ask(ctx, c.p, "cloud", "probe", func() (providers.Health, error) {
		b := c.p.s.find(ref.ID)
		switch _, lied := c.p.s.insideOf(b); {
		case lied != nil:
			return providers.Health{}, lied
		case !b.alive(time.Now()):
			return providers.Health{}, absent(ref.ID)
		}
		return providers.Health{Verdict: sandbox.True, Condition: providers.ConditionHealthy}, nil
	})
}

func (c cloud) Usage(_ context.Context, ref sandbox.Ref) (sandbox.Usage, error) {
	if c.p.s.uses != nil {
		return c.p.s.uses(c.p.s.find(ref.ID)), nil
	}
	return sandbox.Usage{}, fault.New(fault.KindUnsupported, "no usage here")
}

func (c cloud) Labelled(ctx context.Context, profile string, labels map[string]string) ([]sandbox.Sandbox, error) {
	return ask(ctx, c.p, "cloud", "list", func() ([]sandbox.Sandbox, error) {
		return c.p.s.rows(profile, func(b *box) bool { return b.nonce == labels[sandbox.LabelNonce] })
	})
}

func (c cloud) Copies(ctx context.Context, ref sandbox.Ref, nonce string) ([]sandbox.Sandbox, error) {
	return c.Labelled(ctx, ref.Provider, map[string]string{sandbox.LabelNonce: nonce})
}
