package fake

import (
	"context"
	"errors"
	"time"

	"sbx/internal/fault"
)

// Op is one operation of the contract or of an ability.
type Op string

// The operations that can be made to fail.
const (
	OpList      Op = "list"
	OpGet       Op = "get"
	OpTerminate Op = "terminate"
	OpLogs      Op = "logs"
	OpUsage     Op = "usage"
	OpStats     Op = "stats"
	OpCreate    Op = "create"
	OpExec      Op = "exec"
	OpProbe     Op = "probe"
	OpEvents    Op = "events"
	OpSweep     Op = "sweep"
	OpExit      Op = "exit"
	OpQuota     Op = "quota"
	OpRecords   Op = "records"
	OpActivity  Op = "activity"
	OpCleanup   Op = "cleanup"
	OpHistory   Op = "history"
	OpProcesses Op = "processes"
)

// Fault makes some requests go wrong. The first one that fits is used.
type Fault struct {
	Op    Op
	ID    string        // "" = any
	Page  int           // of a listing, from 1; 0 = any
	After int           // how many fitting requests pass unharmed first
	Times int           // how many are harmed; 0 = all
	Delay time.Duration // before the answer
	Hang  bool          // no answer until ctx ends; with Late, after the effect
	Err   error         // the answer; provider and operation are filled in
	Late  bool          // Err comes after the effect: the answer was lost, the work was not
	Cut   time.Duration // of an exec: after this long its stream is lost with Err, or with one of its own, and the command runs on
	Skip  bool          // says yes and does nothing: a terminate without effect, a page that is not there
}

// Break adds faults.
func (p *Provider) Break(faults ...Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range faults {
		p.faults = append(p.faults, &f)
	}
}

// Mend removes every fault.
func (p *Provider) Mend() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = nil
}

// harm picks the fault for a request. The lock is held.
func (p *Provider) harm(op Op, id string, page int) Fault {
	for _, f := range p.faults {
		if f.Op != op || (f.ID != "" && f.ID != id) || (f.Page != 0 && f.Page != page) || f.Times < 0 {
			continue
		}
		if f.After > 0 {
			f.After--
			continue
		}
		if f.Times > 0 {
			if f.Times--; f.Times == 0 {
				f.Times = -1 // used up
			}
		}
		return *f
	}
	return Fault{}
}

// request is what every operation starts with: it is counted, takes its time
// and fails as planned. The Fault that comes back is for the caller to finish:
// Skip, and Err where it is Late.
func (p *Provider) request(ctx context.Context, op Op, id string, page int) (Fault, error) {
	p.mu.Lock()
	p.calls = append(p.calls, Call{Op: op, ID: id, Page: page, At: p.o.Now()})
	p.inFlight++
	p.peak = max(p.peak, p.inFlight)
	f := p.harm(op, id, page)
	deaf, leaks := p.lied(LieDeaf), p.lied(LieLeak)
	p.mu.Unlock()
	defer p.leave()

	if leaks {
		go func() { <-p.released }()
	}
	if deaf {
		return f, nil
	}
	if err := p.endure(ctx, f); err != nil {
		return f, p.wrap(err, op, id)
	}
	if f.Err != nil {
		f.Err = p.wrap(f.Err, op, id)
		if !f.Late && f.Cut == 0 {
			return f, f.Err
		}
	}
	return f, nil
}

// answer is what an operation with an effect ends with: what is Late in a fault.
func (p *Provider) answer(ctx context.Context, f Fault, op Op, id string) error {
	if f.Hang && f.Late {
		<-ctx.Done()
		return p.wrap(ctx.Err(), op, id)
	}
	return f.Err
}

func (p *Provider) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inFlight--
}

func (p *Provider) endure(ctx context.Context, f Fault) error {
	if f.Hang && !f.Late {
		<-ctx.Done()
	}
	return pause(ctx, p.o.Latency+f.Delay)
}

// pause waits for d or the end of ctx, whichever comes first.
func pause(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil || d <= 0 {
		return err
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// wrap names the provider and the operation on a copy: a planted error is
// shared by many requests.
func (p *Provider) wrap(err error, op Op, id string) error {
	what := string(op)
	if id != "" {
		what += " " + id
	}
	var secret string
	if p.lied(LieSecretInError) {
		secret = " (token " + Secret + ")"
	}
	var f *fault.Error
	if !errors.As(err, &f) {
		return &fault.Error{Kind: fault.KindOf(err), Provider: p.o.Name, Op: what + secret, Err: err}
	}
	c := *f
	c.Provider, c.Op = p.o.Name, what+secret
	return &c
}

func (p *Provider) refuse(kind fault.Kind, op Op, id, format string, args ...any) error {
	return p.wrap(fault.New(kind, format, args...), op, id)
}
