package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"unicode"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// frames reads the lines of an assistant in front of the SDK, whose connection ends with the first one that is no message
// of JSON-RPC 2.0. Such a line is answered with an error, as the protocol says, and the next one is read.
type frames struct {
	in   *bufio.Reader
	out  io.Writer
	rest []byte // of what was read, for the next Read
}

// The errors of JSON-RPC 2.0 for what is no message.
const (
	codeParse   = -32700
	codeRequest = -32600
)

// Read is io.Reader's: whole messages, each with the end of its line.
func (f *frames) Read(p []byte) (int, error) {
	for len(f.rest) == 0 {
		line, long, err := f.line()
		if refused := f.take(line, long); refused != nil {
			return 0, refused
		}
		if err != nil && len(f.rest) == 0 {
			return 0, err
		}
	}
	n := copy(p, f.rest)
	f.rest = f.rest[n:]
	return n, nil
}

// line reads a line. Of one beyond maxFrame nothing is kept. The last one may have no end: then it comes with io.EOF.
func (f *frames) line() (line []byte, long bool, err error) {
	for {
		part, err := f.in.ReadSlice('\n')
		if long = long || len(line)+len(part) > maxFrame; long {
			line = nil
		} else {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, long, err
		}
	}
}

// take gives a message to the SDK, those of a batch one by one, and answers what is none.
func (f *frames) take(line []byte, long bool) error {
	if long {
		return f.refuse(nil, codeRequest, fmt.Sprintf("the line is longer than %d KiB", maxFrame>>10))
	}
	line = bytes.TrimFunc(line, func(r rune) bool { return unicode.IsSpace(r) || r == '\ufeff' || r == 0 })
	if len(line) == 0 {
		return nil
	}
	messages := []json.RawMessage{line}
	switch {
	case !json.Valid(line):
		return f.refuse(nil, codeParse, "the line is no JSON: one message a line")
	case line[0] == '[':
		if err := json.Unmarshal(line, &messages); err != nil || len(messages) == 0 {
			return f.refuse(nil, codeRequest, "the batch is empty")
		}
	}
	for _, message := range messages {
		if _, err := jsonrpc.DecodeMessage(message); err != nil {
			if err := f.refuse(idOf(message), codeRequest, "it is no message of JSON-RPC 2.0"); err != nil {
				return err
			}
			continue
		}
		f.rest = append(append(f.rest, message...), '\n')
	}
	return nil
}

// idOf is the id of a request that cannot be read further; nil = it has none that could be answered.
func idOf(message []byte) any {
	var request struct {
		ID     any             `json:"id"`
		Method json.RawMessage `json:"method"`
	}
	if json.Unmarshal(message, &request) != nil || request.Method == nil {
		return nil
	}
	switch request.ID.(type) {
	case string, float64:
		return request.ID
	}
	return nil
}

func (f *frames) refuse(id any, code int, why string) error {
	text, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "error": map[string]any{"code": code, "message": why}})
	if err == nil {
		_, err = f.out.Write(append(text, '\n'))
	}
	return err
}

// shared is a stream that two write to, each a whole line at once, and that its owner closes.
type shared struct {
	mu  sync.Mutex
	out io.Writer
}

// Write is io.Writer's.
func (s *shared) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.Write(p)
}

// Close is io.Closer's.
func (*shared) Close() error { return nil }
