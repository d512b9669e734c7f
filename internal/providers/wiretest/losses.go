package wiretest

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// Lossy is one provider whose answers out of a sandbox are lost now and then: what
// was asked is done, and the connection breaks in the middle of the answer.
type Lossy struct {
	Server *Server
	P      providers.Provider
	Inside []string // the routes whose answers are lost
	Every  int      // each n-th of them; 0 = the second
}

// lossyWords is what the programs of RunLosses write.
const lossyWords = "some words\n"

// RunLosses takes a provider through a proxy that loses answers: what sbx reads for
// itself is read again until it is whole, and what a user's command has written is
// whole or an error, never a part of it with exit 0.
func RunLosses(t *testing.T, open func(t *testing.T) Lossy) {
	t.Helper()
	l := open(t)
	JudgeLosses(t.Context(), t, l)
}

// JudgeLosses is RunLosses with one provider.
func JudgeLosses(ctx context.Context, t T, l Lossy) {
	t.Helper()
	for _, route := range l.Inside {
		l.Server.Break(Fault{Route: route, Every: max(l.Every, 2), Trouble: TroubleTruncate})
	}
	id := l.program(ctx, t)
	for range 3 {
		l.command(ctx, t, id)
	}
}

// program starts one by create and reads it in every way. It gives its sandbox.
func (l Lossy) program(ctx context.Context, t T) string {
	t.Helper()
	launcher, ok := providers.As[providers.Launcher](l.P)
	if !ok {
		for s, err := range l.P.List(ctx, providers.Query{}) {
			assert.NoError(t, err)
			return s.ID
		}
		return ""
	}
	made, err := launcher.Create(ctx, sandbox.Spec{Command: []string{"sh", "-c", "i=0; while [ $i -lt 5 ]; do echo some words; sleep 0.2; i=$((i+1)); done; exit 3"}})
	if err != nil {
		t.Errorf("create: a start whose answer was lost is asked for again: %v", err)
		return ""
	}
	for _, follow := range []bool{true, false} {
		var text strings.Builder
		if reader, ok := providers.As[providers.LogReader](l.P); ok {
			for line, err := range reader.Logs(ctx, made.ID, providers.LogQuery{Follow: follow}) {
				assert.NoError(t, err, "logs, follow=%t", follow)
				text.WriteString(line.Text + "\n")
			}
			assert.Equal(t, strings.Repeat(lossyWords, 5), text.String(), "logs, follow=%t: each line once, in its place", follow)
		}
	}
	if reader, ok := providers.As[providers.ExitReader](l.P); ok {
		exit, err := reader.Exit(ctx, made.ID)
		if assert.NoError(t, err, "exit") && assert.NotNil(t, exit) && assert.NotNil(t, exit.Code) {
			assert.Equal(t, 3, *exit.Code)
		}
	}
	if reader, ok := providers.As[providers.UsageReader](l.P); ok {
		_, err := reader.Usage(ctx, made.ID)
		assert.NoError(t, err, "usage")
	}
	return made.ID
}

// command runs one of a user's.
func (l Lossy) command(ctx context.Context, t T, id string) {
	t.Helper()
	c, ok := providers.As[providers.Commander](l.P)
	if !ok {
		return
	}
	var out bytes.Buffer
	exit, err := c.Exec(ctx, id, providers.Command{Args: []string{"sh", "-c", "echo some words"}, Stdout: &out, Stderr: new(bytes.Buffer)})
	if err == nil && assert.NotNil(t, exit.Code) && *exit.Code == 0 {
		assert.Equal(t, lossyWords, out.String(), "a part of its output, and exit 0")
	}
	if err != nil {
		assert.Equal(t, fault.KindUnavailable, fault.KindOf(err), "%v", err)
	}
}
