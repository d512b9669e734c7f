package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"sbx/internal/fault"
)

// topic is what news of a task go by: an id may be longer than the server lets a
// word be, and hold what must not be read beside it.
func topic(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:])
}

// AwaitTask is TaskStore's. Whoever changes a task in this process wakes it at once,
// and Postgres tells of what others changed; for the rest it looks at intervals.
func (d *Database) AwaitTask(ctx context.Context, id string, version int64) (Task, error) {
	d.follow(ctx)
	heard, leave := d.board.hear(topic(text(id)))
	defer leave()
	for {
		t, err := d.Task(ctx, id)
		switch kind := fault.KindOf(err); {
		case err == nil && t.Version != version:
			return t, nil
		case err != nil && kind != fault.KindUnavailable && kind != fault.KindLocked:
			return Task{}, err
		}
		look := time.NewTimer(d.engine.interval())
		select {
		case <-ctx.Done():
			look.Stop()
			return Task{}, d.trouble(ctx, "await task "+text(id), ctx.Err())
		case <-heard:
			look.Stop()
		case <-look.C:
		}
	}
}

// follower brings the news of other processes while the store is open.
type follower struct {
	stop context.CancelFunc // nil = it never began
	done chan struct{}
}

// end waits until nothing of it is left.
func (f follower) end() {
	if f.stop != nil {
		f.stop()
		<-f.done
	}
}

// follow begins to listen to the engine, once; Close ends it.
func (d *Database) follow(ctx context.Context) {
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
		d.engine.follow(ctx, &d.board)
	}()
}
