package fake

import (
	"context"
	"errors"
	"time"

	"sbx/internal/fault"
	"sbx/internal/poll"
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
	OpAdmit     Op = "admit"
	OpLabels    Op = "labels"
	OpExtend    Op = "extend"
)

// Fault makes requests fail. The first one that matches is used.
type Fault struct {
	Op    Op
	ID    string        // "" = any
	Page  int           // of a listing, from 1; 0 = any
	After int           // matching requests before the first fault
	Times int           // how many requests fail; 0 = all
	Delay time.Duration // before the answer
	Hang  bool          // no answer until ctx ends; with Late, after the effect
	Err   error         // the answer; provider and operation are filled in
	Late  bool          // Err comes after the effect: only the answer was lost
	Cut   time.Duration // of an exec: its stream is lost after this time, with Err or another error, and the command still runs
	Skip  bool          // success without an effect: of a terminate, or a page that is missing
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

// pickFault finds the fault of a request. The lock is held.
func (p *Provider) pickFault(op Op, id string, page int) Fault {
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

// beginRequest begins every operation: it records the call, waits, and returns the error of a fault.
// The caller applies the rest of the returned Fault: Skip, and Err with Late.
func (p *Provider) beginRequest(ctx context.Context, op Op, id string, page int) (Fault, error) {
	p.mu.Lock()
	p.calls = append(p.calls, Call{Op: op, ID: id, Page: page, At: p.o.Now()})
	if op != OpList { // a listing takes no slot
		p.inFlight++
		p.peak = max(p.peak, p.inFlight)
	}
	f := p.pickFault(op, id, page)
	deaf, leaks := p.hasLie(LieDeaf), p.hasLie(LieLeak)
	p.mu.Unlock()
	defer p.endRequest(op)

	if leaks {
		go func() { <-p.released }()
	}
	if deaf {
		return f, nil
	}
	if err := p.applyDelay(ctx, f); err != nil {
		return f, p.placeError(err, op, id)
	}
	if f.Err != nil {
		f.Err = p.placeError(f.Err, op, id)
		if !f.Late && f.Cut == 0 {
			return f, f.Err
		}
	}
	return f, nil
}

// finishRequest ends an operation with an effect: it applies a Late fault.
func (p *Provider) finishRequest(ctx context.Context, f Fault, op Op, id string) error {
	if f.Hang && f.Late {
		<-ctx.Done()
		return p.placeError(ctx.Err(), op, id)
	}
	return f.Err
}

func (p *Provider) endRequest(op Op) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if op != OpList {
		p.inFlight--
	}
}

func (p *Provider) applyDelay(ctx context.Context, f Fault) error {
	if f.Hang && !f.Late {
		<-ctx.Done()
	}
	if poll.Sleep(ctx, p.o.Latency+f.Delay) != nil {
		return ctx.Err()
	}
	return nil
}

// placeError returns a copy of an error with provider and operation; the error of a Fault is shared
// by many requests.
func (p *Provider) placeError(err error, op Op, id string) error {
	what := string(op)
	if id != "" {
		what += " " + id
	}
	var secret string
	if p.hasLie(LieSecretInError) {
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

func (p *Provider) newRefusal(kind fault.Kind, op Op, id, format string, args ...any) error {
	return p.placeError(fault.New(kind, format, args...), op, id)
}

// Lie is a wrong behaviour that looks right. The conformance suite must find each of them.
type Lie string

// The lies of a fake.
const (
	LieResumeOnRead   Lie = "resume_on_read"   // a read resumes a paused sandbox and postpones its expiry
	LieEndOnRead      Lie = "end_on_read"      // a read ends it
	LieGoneForUnknown Lie = "gone_for_unknown" // an unknown id is gone
	LieLeak           Lie = "leak"             // each request leaves a goroutine, until Release
	LieDeaf           Lie = "deaf"             // it ignores the end of ctx until Release
	LieShowEnv        Lie = "show_env"         // shows environment values as labels
	LieEnvInLogs      Lie = "env_in_logs"      // shows environment values as the first log line
	LieSecretInError  Lie = "secret_in_error"  // errors quote the credential, Secret
	LieZeroUsage      Lie = "zero_usage"       // an unknown figure is 0
	LieMixedStreams   Lie = "mixed_streams"    // exec writes stderr to stdout
	LieTailAll        Lie = "tail_all"         // ignores LogQuery.Tail
	LieEmptyLabels    Lie = "empty_labels"     // create drops labels, name and task
	LieDropsLabels    Lie = "drops_labels"     // an edit of labels drops those that it did not set
	LieKeepsEnd       Lie = "keeps_end"        // an extension is accepted, and the end stays
	LieShortens       Lie = "shortens"         // an extension ends it sooner
	LieAnswersTwice   Lie = "answers_twice"    // accepts to end an ended sandbox
	LieListsTwice     Lie = "lists_twice"      // every sandbox is listed twice
	LieOtherID        Lie = "other_id"         // get answers the record of another sandbox
	LieIndependent    Lie = "independent"      // the absence of a record is an independent proof

	LieEndsWithProgram Lie = "ends_with_program" // a lingering sandbox ends with its program
	LieForgetsExit     Lie = "forgets_exit"      // the end of a lingering sandbox becomes its program's exit
	LieFollowsOn       Lie = "follows_on"        // a follow does not end with the program
	LieShutAfter       Lie = "shut_after"        // no command runs after the program's end
	LieOwnNonce        Lie = "own_nonce"         // create replaces the caller's nonce

	LieStaleLog      Lie = "stale_log"      // log lines have times of an hour ago
	LieHidesCommands Lie = "hides_commands" // commands of other clients are not listed
	LieLogsLooks     Lie = "logs_looks"     // each read of the log is a line of it
)

// Lies lists every lie.
func Lies() []Lie {
	return []Lie{
		LieResumeOnRead, LieEndOnRead, LieGoneForUnknown, LieLeak, LieDeaf, LieShowEnv, LieEnvInLogs,
		LieSecretInError, LieZeroUsage, LieMixedStreams, LieTailAll, LieEmptyLabels, LieDropsLabels, LieKeepsEnd, LieShortens,
		LieAnswersTwice, LieListsTwice, LieOtherID, LieIndependent,
		LieEndsWithProgram, LieForgetsExit, LieFollowsOn, LieShutAfter, LieOwnNonce, LieStaleLog, LieHidesCommands, LieLogsLooks,
	}
}

// Secret is the credential of this provider.
const Secret = "fake-9f2c71" //nolint:gosec // no real credential

// Tell enables lies.
func (p *Provider) Tell(lies ...Lie) {
	for _, l := range lies {
		p.lies.Store(l, true)
	}
}

// Release ends the waits of LieLeak and LieDeaf. It may be called once.
func (p *Provider) Release() { close(p.released) }

func (p *Provider) hasLie(l Lie) bool {
	_, told := p.lies.Load(l)
	return told
}

// applyReadLies applies the lies of reads to a box. The lock is held.
func (p *Provider) applyReadLies(b *box, now time.Time) {
	if p.hasLie(LieResumeOnRead) {
		if b.s.State == "paused" {
			b.s.State = "running"
		}
		if !b.s.ExpiresAt.IsZero() {
			b.s.ExpiresAt = b.s.ExpiresAt.Add(time.Minute)
		}
	}
	if p.hasLie(LieEndOnRead) && b.asked.IsZero() {
		b.asked = now
	}
}
