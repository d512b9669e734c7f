package wirekit

import (
	"context"
	"sync/atomic"
	"time"

	"sbx/internal/fault"
	"sbx/internal/providers"
)

// silence is how long a stream may bring nothing before the API is asked whether there is more to come: such a
// stream has no signs of life of its own.
const silence = 10 * time.Second

// outage is how long the API may not answer that question.
const outage = 15 * time.Second

// Pulse says when a stream last brought something.
type Pulse struct{ at atomic.Int64 }

// Beat says that something has come.
func (p *Pulse) Beat() { p.at.Store(time.Now().UnixNano()) }

func (p *Pulse) age() time.Duration { return time.Since(time.Unix(0, p.at.Load())) }

// Watch asks about a stream that is silent, until ctx ends. It gives the stream up where the API does not answer, or
// where goesOn says that nothing more comes; then the error is ErrOver.
func (p *Pulse) Watch(ctx context.Context, goesOn func(context.Context) (bool, error), give func(error)) {
	for answered := time.Now(); providers.SleepWithoutSlot(ctx, silence) == nil; {
		if p.age() < silence {
			answered = time.Now()
			continue
		}
		more, err := goesOn(ctx)
		switch {
		case err == nil && !more && p.age() >= silence:
			give(ErrOver)
			return
		case err == nil:
			answered = time.Now()
		case fault.KindOf(err) != fault.KindUnavailable, time.Since(answered) >= outage:
			give(err)
			return
		}
	}
}

// ErrOver is the error of a stream that Watch gives up since nothing more comes.
var ErrOver = fault.New(fault.KindUnavailable, "what it belongs to has ended, and the stream has not")
