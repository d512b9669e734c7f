package vercel

import (
	"context"
	"sync"
	"time"

	"sbx/internal/sandbox"
)

// mostPause is how long new commands of a session may go unseen while following.
const mostPause = 4 * time.Second

// follower reads several commands at once: a server among them may run for as long
// as the session.
type follower struct {
	r       *commandLogs
	lines   chan sandbox.LogLine
	failed  chan error
	running sync.WaitGroup
	done    chan struct{} // closed when the last reader of a session that is over has ended; nil before
	pause   time.Duration
	again   *time.Timer
}

// follow reads the commands that run, and those that are started, until the session
// is over.
func (r *commandLogs) follow(ctx context.Context, yield func(sandbox.LogLine, error) bool) {
	ctx, cancel := context.WithCancel(ctx)
	f := &follower{r: r, lines: make(chan sandbox.LogLine), failed: make(chan error), pause: lookAgain, again: time.NewTimer(lookAgain)}
	defer f.running.Wait()
	defer cancel()
	defer f.again.Stop()
	f.start(ctx, r.order)
	for {
		var err error
		select {
		case l := <-f.lines:
			if !yield(l, nil) {
				return
			}
		case <-f.done:
			return
		case <-f.again.C:
			err = f.look(ctx)
		case err = <-f.failed:
		case <-ctx.Done():
			err = r.c.over(ctx, r.op)
		}
		if err != nil {
			yield(sandbox.LogLine{}, err)
			return
		}
	}
}

// look finds new commands, and whether the session still lives.
func (f *follower) look(ctx context.Context) error {
	r := f.r
	var one wireOneSession
	err := r.c.get(ctx, r.op, session(r.v.session.ID), &one)
	if missing(err) || (err == nil && over(one.Session.Status)) {
		f.done = make(chan struct{})
		go func() {
			f.running.Wait()
			close(f.done)
		}()
		return nil
	}
	var fresh []*output
	if err == nil {
		fresh, err = r.commands(ctx)
	}
	if err != nil && !missing(err) && !moving(err) { // it may have ended just now: the next look sees it
		return err
	}
	f.start(ctx, fresh)
	if f.pause = min(2*f.pause, mostPause); len(fresh) > 0 {
		f.pause = lookAgain
	}
	f.again.Reset(f.pause)
	return nil
}

// start reads commands to their ends. That of the session is a plain end of a log.
func (f *follower) start(ctx context.Context, outputs []*output) {
	for _, o := range outputs {
		if o.told {
			continue
		}
		o.take = func(l sandbox.LogLine) bool {
			select {
			case f.lines <- l:
				return true
			case <-ctx.Done():
				return false
			}
		}
		f.running.Go(func() {
			err := o.read(ctx, 0)
			if err == nil || missing(err) {
				o.flush()
				return
			}
			select {
			case f.failed <- err:
			case <-ctx.Done():
			}
		})
	}
}
