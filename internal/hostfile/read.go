package hostfile

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"sbx/internal/fault"
)

// TooLargeError is a file beyond the bound of its reader.
type TooLargeError struct {
	Path  string
	Limit int64 // in bytes
}

// Error names the bound.
func (e *TooLargeError) Error() string {
	return e.Path + ": larger than " + sizeText(e.Limit) + ", the limit"
}

// File is a file that the operator named in a flag.
type File struct {
	Flag  string // as the operator typed it, for messages: "--env-file"
	Path  string
	Limit int64  // the most bytes that are read
	Hint  string // what to name instead; "" = none
}

// Read is Read of the file. A file that cannot be read is fault.KindUsage with
// the name of the flag.
func (f File) Read(ctx context.Context) ([]byte, error) {
	content, err := Read(ctx, f.Path, f.Limit)
	switch {
	case err == nil:
		return content, nil
	case ctx.Err() != nil:
		return nil, err
	}
	return nil, fault.Usage("%s: %w", f.Flag, err).WithHint("%s", f.Hint)
}

// Read reads the whole of a regular file, a pipe or a device, of at most limit
// bytes. It returns when ctx ends, with the cause of that; a system call that
// still blocks, such as opening a pipe without a writer, is abandoned to its
// goroutine. Other errors name the path; beyond limit it is a TooLargeError.
func Read(ctx context.Context, path string, limit int64) ([]byte, error) {
	type result struct {
		content []byte
		err     error
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	done := make(chan result, 1)
	go func() {
		content, err := readBounded(path, limit)
		done <- result{content, err}
	}()
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case r := <-done:
		return r.content, r.err
	}
}

func readBounded(path string, limit int64) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, unreadable(err)
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err != nil {
		return nil, unreadable(err)
	}
	if int64(len(content)) > limit {
		return nil, &TooLargeError{Path: path, Limit: limit}
	}
	return content, nil
}

// unreadable says why a file cannot be read, without the name of the system call.
func unreadable(err error) error {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		return fmt.Errorf("%s: cannot be read: %w", at.Path, at.Err)
	}
	return err
}

// sizeText writes a number of bytes in the largest unit that divides it.
func sizeText(n int64) string {
	for _, unit := range []struct {
		bytes int64
		name  string
	}{{1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if n >= unit.bytes && n%unit.bytes == 0 {
			return fmt.Sprintf("%d %s", n/unit.bytes, unit.name)
		}
	}
	return fmt.Sprintf("%d bytes", n)
}

var errLongLine = errors.New("a line is longer than " + sizeText(bufio.MaxScanTokenSize) + ", the limit")

// byteOrderMark is what some editors write in front of a text.
const byteOrderMark = "\ufeff"

// Lines gives the lines of a stream that cannot be closed, such as standard
// input, without a byte order mark in front of it, to add, until the stream ends, add fails, or ctx ends, whose cause it
// then returns. A read that still blocks is abandoned to its goroutine.
func Lines(ctx context.Context, from io.Reader, add func(line string) error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	lines, ended := make(chan string), make(chan error, 1)
	go func() {
		defer close(lines)
		scanner := bufio.NewScanner(from)
		mark := byteOrderMark
		for ; scanner.Scan(); mark = "" {
			select {
			case lines <- strings.TrimPrefix(scanner.Text(), mark):
			case <-ctx.Done():
				return
			}
		}
		err := scanner.Err()
		if errors.Is(err, bufio.ErrTooLong) {
			err = errLongLine
		}
		ended <- err
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
