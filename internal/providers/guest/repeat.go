package guest

import (
	"context"
	"errors"
	"time"

	"sbx/internal/fault"
)

// How often a text is run again whose answer was lost on the way: the proxies before
// a sandbox lose a few of a hundred short answers. What takes long is not repeated:
// whoever does not answer now will not a moment later.
const (
	tries        = 5
	firstPause   = 200 * time.Millisecond
	repeatWithin = 10 * time.Second // from the first attempt on
)

// Repeat runs a text whose effect is the same when it is run twice, again where its
// answer was lost.
func Repeat(ctx context.Context, sh Shell, text string) (printed []byte, code int, err error) {
	began := time.Now()
	for try, pause := 1, firstPause; ; try, pause = try+1, 2*pause {
		printed, code, err = sh(ctx, text)
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
