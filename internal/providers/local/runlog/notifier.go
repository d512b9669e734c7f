package runlog

import (
	"context"
	"time"

	"github.com/fsnotify/fsnotify"
)

// pollEvery is how often a follower looks where the system gives it no watch,
// for example because the user's inotify instances are used up.
const pollEvery = 500 * time.Millisecond

// notifier says when to look at a log again: after a change in its directory,
// or else in intervals.
type notifier struct {
	watcher *fsnotify.Watcher
	ticker  *time.Ticker
	events  <-chan fsnotify.Event
	errors  <-chan error
	ticks   <-chan time.Time
}

// newNotifier watches the directory rather than its files, because a rotation
// replaces those.
func newNotifier(dir string) *notifier {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return newPoller()
	}
	if watcher.Add(dir) != nil {
		watcher.Close() //nolint:errcheck // there is nothing to lose in it
		return newPoller()
	}
	return &notifier{watcher: watcher, events: watcher.Events, errors: watcher.Errors}
}

func newPoller() *notifier {
	ticker := time.NewTicker(pollEvery)
	return &notifier{ticker: ticker, ticks: ticker.C}
}

// wait returns nil when it is time to look or done is closed. An error of the
// watch is a lost event: time to look.
func (n *notifier) wait(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-done:
	case <-n.events:
	case <-n.errors: //nolint:errcheck // a lost event is a reason to look, nothing more
	case <-n.ticks:
	}
	return nil
}

func (n *notifier) close() {
	if n.watcher != nil {
		n.watcher.Close() //nolint:errcheck // nothing is written through it
	}
	if n.ticker != nil {
		n.ticker.Stop()
	}
}
