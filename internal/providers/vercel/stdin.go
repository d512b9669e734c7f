package vercel

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"path"

	"sbx/internal/fault"
	"sbx/internal/httpx"
)

const (
	// mostStdin is how much a command may be given to read, in bytes: all of it is
	// held in memory and sent in one request.
	mostStdin = 64 << 20
	// home is where sessions work that do not say (Vercel Sandbox documentation).
	home = "/vercel/sandbox"
	// withStdin becomes a program that reads from a file which is gone at once.
	withStdin = `f=$1; shift; exec < "$f" || exit 125; rm -f "$f"; exec "$@"`
)

// upload sends stdin as a file of the session's folder and gives its path.
func (r *command) upload(ctx context.Context) (string, error) {
	text, err := r.readStdin(ctx)
	if err != nil {
		return "", err
	}
	name, folder := ".sbx-stdin-"+r.mark, cmp.Or(r.cwd, home)
	packed, err := pack(name, text)
	if err != nil {
		return "", fault.New(fault.KindUnknown, "stdin: %w", err).At(r.c.name, r.op())
	}
	_, err = r.c.http.Do(ctx, httpx.Request{
		Op: r.op(), Method: http.MethodPost, Path: session(r.id, "fs", "write"), Query: r.c.scoped(), Body: packed,
		Header: http.Header{"Content-Type": {"application/gzip"}, "X-Cwd": {folder}}, Timeout: createTimeout,
	})
	return path.Join(folder, name), r.c.stopped(err, "make a new sandbox")
}

// readStdin reads all of it, or leaves when ctx ends: a reader that never ends is
// then left behind with whoever handed it in.
func (r *command) readStdin(ctx context.Context) ([]byte, error) {
	type result struct {
		text []byte
		err  error
	}
	done := make(chan result, 1)
	go func() {
		text, err := io.ReadAll(io.LimitReader(r.cmd.Stdin, mostStdin+1))
		done <- result{text, err}
	}()
	select {
	case <-ctx.Done():
		return nil, r.c.over(ctx, r.op())
	case got := <-done:
		switch {
		case got.err != nil:
			return nil, fault.New(fault.KindUnknown, "stdin: %w", got.err).At(r.c.name, r.op())
		case len(got.text) > mostStdin:
			return nil, fault.Usage("stdin is more than %d MiB, which is sent whole", mostStdin>>20).At(r.c.name, r.op()).
				WithHint("let the command fetch it")
		}
		return got.text, nil
	}
}

// pack makes a tar of one file.
func pack(name string, text []byte) ([]byte, error) {
	var packed bytes.Buffer
	zipped := gzip.NewWriter(&packed)
	archive := tar.NewWriter(zipped)
	err := archive.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(text))})
	if err == nil {
		_, err = archive.Write(text)
	}
	err = errors.Join(err, archive.Close(), zipped.Close())
	return packed.Bytes(), err
}
