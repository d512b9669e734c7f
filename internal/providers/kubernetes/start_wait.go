package kubernetes

import (
	"context"
	"slices"
	"time"

	"sbx/internal/poll"
	"sbx/internal/providers/wirekit"
	"sbx/internal/sandbox"
)

// firstEventLimit is how long the first event of a pod may take before its object is read.
const firstEventLimit = 500 * time.Millisecond

// startWait is the wait for the pod of an object that was just made. Where a watch follows the pods, the object is read
// when one of them runs, and every readAfter: its conditions may say why there is no pod, and the watch may miss the pods.
// Without a watch it is read again and again.
type startWait struct {
	c         *Client
	id        string
	watch     *podWatch // nil = its pods are not watched
	pauses    *poll.Backoff
	readAfter time.Duration
	readOnce  bool // the object was read since its pod runs
}

func (c *Client) newStartWait(ctx context.Context, made object) *startWait {
	return &startWait{
		c: c, id: idOf(made.kind, made.Metadata), watch: c.watchPods(ctx, made), readAfter: firstEventLimit,
		pauses: poll.NewBackoff(100*time.Millisecond, 2*time.Second),
	}
}

// next waits until there may be news, and gives the object as it is then.
func (s *startWait) next(ctx context.Context) (object, error) {
	if s.watch == nil {
		return s.pauseAndRead(ctx)
	}
	due := time.NewTimer(s.readAfter)
	defer due.Stop()
	for {
		o, changed, over := s.watch.current()
		state, _ := o.state()
		switch {
		case over:
			return s.pauseAndRead(ctx)
		case len(o.pods) == 0: // wait on
		case state == sandbox.StateRunning && o.podRuns(), slices.Contains(startFailures(), o.waitReason()):
			return o, nil
		case o.podRuns():
			return s.readOfRunningPod(ctx, o)
		case state.Ended(), state == sandbox.StateTerminating:
			return s.read(ctx)
		}
		select {
		case <-changed:
		case <-due.C:
			return s.readBesideWatch(ctx)
		case <-ctx.Done():
			return o, wirekit.ContextFault(ctx)
		}
	}
}

// readOfRunningPod reads the object alone, whose pod runs by the watch, until its own status says so too.
func (s *startWait) readOfRunningPod(ctx context.Context, seen object) (object, error) {
	if s.readOnce && s.pauses.Sleep(ctx) != nil {
		return seen, wirekit.ContextFault(ctx)
	}
	s.readOnce = true
	o, err := s.c.readObject(ctx, "create", s.id)
	if err == nil {
		s.c.podWatches.noteRead(s.id, o)
		o, _, _ = s.watch.current()
	}
	return o, err
}

// readBesideWatch reads the object with its pods. Where it has more than the watch shows, they lack the label by which
// the watch selects, since a webhook may drop it: the watch is given up.
func (s *startWait) readBesideWatch(ctx context.Context) (object, error) {
	s.readAfter = watchTrustedFor
	o, err := s.read(ctx)
	if seen, _, _ := s.watch.current(); len(o.pods) > len(seen.pods) {
		s.c.podWatches.stop(s.id)
		s.watch = nil
	}
	return o, err
}

func (s *startWait) pauseAndRead(ctx context.Context) (object, error) {
	if s.pauses.Sleep(ctx) != nil {
		return object{}, wirekit.ContextFault(ctx)
	}
	return s.read(ctx)
}

func (s *startWait) read(ctx context.Context) (object, error) {
	o, err := s.c.readWithPods(ctx, "create", s.id)
	if err == nil {
		s.c.podWatches.noteRead(s.id, o)
	}
	return o, err
}
