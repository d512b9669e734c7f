package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"sync"
	"time"

	"sbx/internal/fault"
)

// topicOf is the notification topic of a task: a hash, because an id may exceed the
// server's limit and contain any character.
func topicOf(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:])
}

// AwaitTask implements TaskStore. A change by this process wakes it at once, and Postgres
// notifies of changes by others; besides, it polls.
func (d *Database) AwaitTask(ctx context.Context, id string, version int64) (Task, error) {
	d.startFollowing(ctx)
	heard, leave := d.waiters.subscribe(topicOf(storableText(id)))
	defer leave()
	for {
		t, err := d.Task(ctx, id)
		switch kind := fault.KindOf(err); {
		case err == nil && t.Version != version:
			return t, nil
		case err != nil && kind != fault.KindUnavailable && kind != fault.KindLocked:
			return Task{}, err
		}
		select {
		case <-ctx.Done():
			return Task{}, d.callError(ctx, "await task "+storableText(id), ctx.Err())
		case <-heard:
		case <-time.After(d.engine.pollInterval()):
		}
	}
}

// follower receives notifications of other processes while the store is open.
type follower struct {
	stop context.CancelFunc // nil = it never started
	done chan struct{}
}

// startFollowing starts to listen to the engine, once; Close ends it.
func (d *Database) startFollowing(ctx context.Context) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed || d.follower.stop != nil {
		return
	}
	ctx, d.follower.stop = context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	d.follower.done = done
	go func() {
		defer close(done)
		d.engine.followTopics(ctx, &d.waiters)
	}()
}

// waiters are the goroutines of one process that wait for a change of a task. A
// notification may come without a change, and a change of another process without one: a
// woken goroutine reads again.
type waiters struct {
	mu      sync.Mutex
	waiting map[string]map[chan struct{}]bool // by topic
}

// subscribe returns a channel that receives a value after each notification of the topic,
// until leave is called.
func (b *waiters) subscribe(topic string) (heard <-chan struct{}, leave func()) {
	news := make(chan struct{}, 1)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.waiting == nil {
		b.waiting = map[string]map[chan struct{}]bool{}
	}
	if b.waiting[topic] == nil {
		b.waiting[topic] = map[chan struct{}]bool{}
	}
	b.waiting[topic][news] = true
	return news, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.waiting[topic], news)
		if len(b.waiting[topic]) == 0 {
			delete(b.waiting, topic)
		}
	}
}

// publishTopic wakes the waiters for a topic, without blocking.
func (b *waiters) publishTopic(topic string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	wakeWaiters(b.waiting[topic])
}

// publishAll wakes all: notifications may have been missed.
func (b *waiters) publishAll() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, waiting := range b.waiting {
		wakeWaiters(waiting)
	}
}

func wakeWaiters(waiting map[chan struct{}]bool) {
	for news := range waiting {
		select {
		case news <- struct{}{}:
		default: // an earlier notification is still unread
		}
	}
}
