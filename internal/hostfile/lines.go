package hostfile

import (
	"bufio"
	"context"
	"io"
)

// Lines gives the lines of a stream that cannot be closed, such as standard
// input, to add, until the stream ends, add fails, or ctx ends, whose cause it
// then returns. A read that still blocks is abandoned to its goroutine.
func Lines(ctx context.Context, from io.Reader, add func(line string) error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	lines, ended := make(chan string), make(chan error, 1)
	go func() {
		defer close(lines)
		scanner := bufio.NewScanner(from)
		for scanner.Scan() {
			select {
			case lines <- scanner.Text():
			case <-ctx.Done():
				return
			}
		}
		ended <- scanner.Err()
	}()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case line, more := <-lines:
			if !more { // closed without an end where the context was seen there first
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				return <-ended
			}
			if err := add(line); err != nil {
				return err
			}
		}
	}
}
