package look

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"sbx/internal/agentlog"
	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/ops"
	"sbx/internal/sandbox"
)

// EventsRequest says which events of an agent are read.
type EventsRequest struct {
	Word   string    // a sandbox, a task, or a file; see IsSessionFile
	File   bool      // it is a file
	Follow bool      // EventsResult.Follow comes next
	Diffs  bool      // each change of a file with its diff
	Keys   bool      // for a comparison
	Input  io.Reader // what "-" means
}

// EventsResult is a session.
type EventsResult struct {
	*agentlog.Session

	Name   string  // what was read, for people
	Errors []error // sources that could not be read

	file    string      // of which events are read when they are shown; "" = they are kept
	opened  fs.FileInfo // that file as it was read last
	collect *agentlog.Collector
	fleet   *fleet.Fleet // nil = it is from a file
	ref     sandbox.Ref
	stateAt time.Time // of the last look at the state of the sandbox
	absent  int       // looks in a row that did not find it
	refused fleet.RefusedSources
}

// standardInput names the session that is read from there.
const standardInput = "-"

// Events reads a session. With an error nothing was read.
func Events(ctx context.Context, env *ops.Env, req EventsRequest, watch ops.Observer) (*EventsResult, error) {
	progress := watch.Progress("reading " + req.Word)
	defer progress.Done()
	r := &EventsResult{Name: req.Word}
	options := agentlog.Options{Diffs: req.Diffs, Keys: req.Keys, Growing: req.Follow}
	if !req.File {
		return r.readSandbox(ctx, env, req.Word, options)
	}
	if req.Word == standardInput {
		r.Name = "standard input"
		input := io.NopCloser(req.Input)
		return r.readStream(ctx, options, func() (io.ReadCloser, error) { return input, nil })
	}
	path := env.Path(req.Word)
	info, err := os.Stat(path)
	if err == nil && info.Mode().IsRegular() {
		r.file, options.Places = path, !req.Keys
	}
	if req.Follow && r.file == "" {
		return nil, fault.Usage("%s: only a regular file can be followed", req.Word)
	}
	return r.readStream(ctx, options, func() (io.ReadCloser, error) { return os.Open(path) })
}

// IsSessionFile says that a word means a file: "-", or a path of one that exists, with a separator or the ending of
// JSONL. A path or an ending without a file is a mistake where nothing else can be meant.
func IsSessionFile(env *ops.Env, word string) (bool, error) {
	isPath, isJSONL := strings.ContainsRune(word, os.PathSeparator), strings.HasSuffix(word, ".jsonl")
	if word == standardInput || !isPath && !isJSONL {
		return word == standardInput, nil
	}
	info, err := os.Stat(env.Path(word))
	switch {
	case err == nil && !info.IsDir():
		return true, nil
	case isJSONL || strings.HasPrefix(word, ".") || strings.HasPrefix(word, string(os.PathSeparator)):
		return false, fault.Usage("%s: %s", word, whyNoFile(info, err)).WithHint("name a session in JSONL, - for standard input, or a sandbox as PROFILE/ID")
	}
	return false, nil
}

func whyNoFile(info fs.FileInfo, err error) string {
	switch {
	case info != nil:
		return "it is a folder"
	case errors.Is(err, fs.ErrNotExist):
		return "there is no such file"
	}
	return "it cannot be read: " + reason(err)
}

// reason is why a file cannot be read, without its path and the name of the system call.
func reason(err error) string {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		return at.Err.Error()
	}
	return err.Error()
}

// readStream reads a stream that may block: when ctx ends it is left to its goroutine.
func (r *EventsResult) readStream(ctx context.Context, o agentlog.Options, open func() (io.ReadCloser, error)) (*EventsResult, error) {
	type read struct {
		collect *agentlog.Collector
		opened  fs.FileInfo
		err     error
	}
	done := make(chan read, 1)
	go func() {
		got := read{collect: agentlog.NewCollector(o)}
		from, err := open()
		if got.err = err; err == nil {
			defer from.Close()
			if file, ok := from.(*os.File); ok {
				got.opened, _ = file.Stat()
			}
			got.err = got.collect.ReadLines(ctx, from)
		}
		done <- got
	}()
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case got := <-done:
		r.collect, r.Session, r.opened = got.collect, got.collect.Session(), got.opened
		switch {
		case got.err != nil && ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case got.err != nil:
			return nil, fault.Usage("%s: it cannot be read: %s", r.Name, reason(got.err))
		case r.Zstd:
			return nil, fault.Usage("%s: it is compressed with zstd", r.Name).WithHint("zstd -dc %s | sbx events -", r.Name)
		case r.Len() == 0 && r.Lost() > 0:
			return nil, fault.Usage("%s: no line is an event", r.Name).
				WithHint(`a session is JSONL of OmoiOS, {"event_type":"agent.tool_use","event_data":{...},"created_at":"2026-11-20T12:00:00Z"} a line, or a transcript of Claude Code or Codex`)
		}
	}
	return r, nil
}

// Each calls show for each event, of a file as it is read again, until ctx ends; see agentlog.Session.Each.
func (r *EventsResult) Each(ctx context.Context, folded bool, show func(*agentlog.Event, *agentlog.Beats) error) error {
	each := func(e *agentlog.Event, beats *agentlog.Beats) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return show(e, beats)
	}
	if r.file == "" {
		return r.Session.Each(nil, folded, each)
	}
	file, err := os.Open(r.file)
	if err != nil {
		return fault.Usage("%s: it cannot be read: %s", r.Name, reason(err))
	}
	defer file.Close()
	err = r.Session.Each(file, folded, each)
	if changed, ok := errors.AsType[*agentlog.ChangedError](err); ok {
		return fault.New(fault.KindUnavailable, "%s: line %d was changed while it was read", r.Name, changed.Line)
	}
	return err
}

// EventsComparison is what differs between two sessions.
type EventsComparison struct {
	agentlog.Comparison

	Sessions [2]*EventsResult
}

// Whole says that all of the session could be read: what is said of it holds of all that its agent did.
func (r *EventsResult) Whole() bool { return r.Lost() == 0 && len(r.Errors) == 0 }

// Whole says that both sessions could be read.
func (c *EventsComparison) Whole() bool { return c.Sessions[0].Whole() && c.Sessions[1].Whole() }

// CompareEvents reads two sessions and compares what their agents did.
func CompareEvents(ctx context.Context, env *ops.Env, a, b EventsRequest, watch ops.Observer) (*EventsComparison, error) {
	c := &EventsComparison{}
	for i, req := range []EventsRequest{a, b} {
		req.Keys = true
		r, err := Events(ctx, env, req, watch)
		if err != nil {
			return nil, err
		}
		c.Sessions[i] = r
	}
	c.Comparison = agentlog.Compare(c.Sessions[0].Session, c.Sessions[1].Session)
	return c, nil
}
