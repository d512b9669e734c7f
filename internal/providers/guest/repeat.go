package guest

import (
	"context"
	"errors"
	"time"

	"sbx/internal/fault"
)

// How often a text is run again whose answer was lost on the way: the proxies before
// a sandbox lose a few of a hundred short answers.
const (
	tries        = 5
	firstPause   = 200 * time.Millisecond
	lookTime     = 15 * time.Second // of one attempt: what such a text does takes a moment
	repeatWithin = 31 * time.Second // from the first attempt on, so that two that hang are repeated
)

// Repeat runs a text whose effect is the same when it is run twice, again where its
// answer was lost.
func Repeat(ctx context.Context, sh Shell, text string) (printed []byte, code int, err error) {
	began := time.Now()
	for try, pause := 1, firstPause; ; try, pause = try+1, 2*pause {
		printed, code, err = attempt(ctx, sh, text)
		if err == nil || fault.KindOf(err) != fault.KindUnavailable {
			return printed, code, err
		}
		wait := pause
		if told, ok := errors.AsType[*fault.Error](err); ok {
			wait = max(wait, told.RetryAfter)
		}
		if try == tries || time.Since(began)+wait > repeatWithin || Wait(ctx, wait) != nil {
			return printed, code, err
		}
	}
}

// Look runs a text that changes nothing and reads what it printed; again where the
// answer was lost, and once more where what came cannot be read: half an answer is none,
// and a shell that prints into everything does so again.
func Look[T any](ctx context.Context, sh Shell, text string, read func(printed []byte, code int) (T, error)) (T, error) {
	for again := false; ; again = true {
		printed, code, err := Repeat(ctx, sh, text)
		if err != nil {
			var none T
			return none, err
		}
		got, err := read(printed, code)
		if again || !errors.Is(err, ErrOutput) || Wait(ctx, firstPause) != nil {
			return got, err
		}
	}
}

// attempt runs a text once. One that hangs is lost like one whose answer broke off.
func attempt(ctx context.Context, sh Shell, text string) ([]byte, int, error) {
	inner, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	printed, code, err := sh(inner, text)
	if err != nil && inner.Err() != nil && ctx.Err() == nil {
		return nil, -1, fault.New(fault.KindUnavailable, "nothing inside answers within %s", lookTime).Inside()
	}
	return printed, code, err
}
