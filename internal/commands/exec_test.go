package commands

import (
	"context"
	"errors"
	"io"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/output"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/bubble"
	"sbx/internal/testkit/fake"
)

func TestExecExits(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		args           []string
		code           int
		stdout, stderr string // stderr: a part
	}{
		"well":              {[]string{"exec", "prod/aaaa", "--", "echo", "hello"}, 0, "hello\n", ""},
		"by word":           {[]string{"exec", "aaaa", "--", "echo", "--", "-o", "json"}, 0, "-- -o json\n", ""},
		"its own code":      {[]string{"exec", "prod/aaaa", "--", "sh", "-c", "echo out; echo err >&2; exit 3"}, 3, "out\n", "err\n"},
		"bytes as they are": {[]string{"exec", "prod/aaaa", "--", "echo", "\x1b[2J\xff"}, 0, "\x1b[2J\xff\n", ""},
		"not found":         {[]string{"exec", "prod/aaaa", "--", "nope"}, 127, "", "was not found"},
		"its variables":     {[]string{"exec", "prod/aaaa", "--env", "A=1", "--env", "HERE", "--", "sh", "-c", "echo $A $HERE"}, 0, "1 now\n", ""},
		"limit":             {[]string{"exec", "prod/aaaa", "--timeout", "1s", "--", "sleep", "60"}, 124, "", "--timeout 1s"},
		"unknown":           {[]string{"exec", "prod/nope", "--", "true"}, 5, "", "nope"},
		"ambiguous":         {[]string{"exec", "twin", "--", "true"}, 2, "", "matches 2 sandboxes"},
		"has ended":         {[]string{"exec", "prod/done", "--", "true"}, 6, "", "it has ended"},
		"is paused":         {[]string{"exec", "prod/paus", "--", "true"}, 7, "", "it is paused"},
		"unset variable":    {[]string{"exec", "prod/aaaa", "--env", "NOPE", "--", "true"}, 2, "", "--env NOPE"},
		"no terminal":       {[]string{"exec", "-t", "prod/aaaa", "--", "true"}, 2, "", "standard input is no terminal"},
		"no columns":        {[]string{"exec", "--columns", "ref", "prod/aaaa", "--", "true"}, 2, "", "has no columns"},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			paused, done := running("paus", time.Minute), endedSeed("done", sandbox.StateTerminated, nil)
			paused.Sandbox.State = sandbox.StatePaused
			b, _ := oneFake(running("aaaa", time.Minute), running("twin1", time.Minute), running("twin2", time.Minute), paused, done)
			b.env = []string{"HERE=now"}
			r := b.runArgs(t, tc.args...)
			assert.Equal(t, tc.code, r.code, r.stderr)
			assert.Equal(t, tc.stdout, r.stdout)
			assert.Contains(t, r.stderr, tc.stderr)
			if tc.code == 3 {
				assert.Equal(t, "err\n", r.stderr, "sbx adds nothing of its own")
			}
		})
	}
}

func TestExecRefusesDocuments(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"json", "ndjson", "yaml", "csv", "name", "nagios", "jq=.", "template=x"} {
		b, p := oneFake(running("aaaa", time.Minute))
		r := b.run(t, "exec prod/aaaa -o "+format+" -- true")
		assert.Equal(t, 2, r.code, format)
		assert.Empty(t, r.stdout, format)
		assert.NotEmpty(t, r.stderr, format)
		assert.Empty(t, p.Calls(), format)
	}
}

func TestExecForwardsInputOnlyWhenAsked(t *testing.T) {
	t.Parallel()
	b, _ := oneFake(running("aaaa", time.Minute))
	b.stdin = "typed\n"
	assert.Equal(t, "typed\n", b.run(t, "exec -i prod/aaaa -- cat").stdout)
	assert.Empty(t, b.run(t, "exec prod/aaaa -- cat").stdout)
}

func TestExecIsInterrupted(t *testing.T) {
	t.Parallel()
	b, _ := oneFake(running("aaaa", time.Minute))
	b.context = func(ctx context.Context) context.Context {
		ctx, cancel := context.WithCancelCause(ctx)
		context.AfterFunc(t.Context(), func() { cancel(nil) })
		time.AfterFunc(20*time.Millisecond, func() { cancel(fault.New(fault.KindCanceled, "interrupted")) })
		return ctx
	}
	assert.Equal(t, 130, b.run(t, "exec prod/aaaa -- sleep 60").code)
}

func TestExecOnProvidersInTrouble(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		fault fake.Fault
		line  string
		code  int
	}{
		"not listed":   {fake.Fault{Op: fake.OpList, Err: fault.New(fault.KindUnavailable, "503")}, "exec aaaa -- true", 7},
		"no rights":    {fake.Fault{Op: fake.OpExec, Err: fault.New(fault.KindAuth, "403")}, "exec prod/aaaa -- true", 4},
		"gone":         {fake.Fault{Op: fake.OpExec, Err: fault.New(fault.KindGone, "expired")}, "exec prod/aaaa -- true", 6},
		"unsorted":     {fake.Fault{Op: fake.OpExec, Err: errors.New("what is this")}, "exec prod/aaaa -- true", 125},
		"launcher":     {fake.Fault{Op: fake.OpExec, Err: fault.New(fault.KindLauncher, "no fork")}, "exec prod/aaaa -- true", 125},
		"no execution": {fake.Fault{Op: fake.OpExec, Err: fault.New(fault.KindNotExecutable, "mode 644")}, "exec prod/aaaa -- true", 126},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, p := oneFake(running("aaaa", time.Minute))
			p.Break(tc.fault)
			r := b.run(t, tc.line)
			assert.Equal(t, tc.code, r.code, r.stderr)
			assert.Contains(t, r.stderr, "sbx: error: ")
			assert.Empty(t, r.stdout)
		})
	}
}

// commander answers every exec in one way and keeps what it was given.
type commander struct {
	*fake.Provider

	exit  sandbox.Exit
	wait  bool // until ctx ends
	run   func(ctx context.Context, given providers.Command)
	given providers.Command
}

func (c *commander) Exec(ctx context.Context, _ string, given providers.Command) (sandbox.Exit, error) {
	c.given = given
	if c.wait {
		<-ctx.Done()
	}
	if c.run != nil {
		c.run(ctx, given)
	}
	return c.exit, nil
}

func commanded(exit sandbox.Exit) (*bench, *commander) {
	_, p := oneFake(running("aaaa", time.Minute))
	c := &commander{Provider: p, exit: exit}
	return &bench{members: []providers.Provider{c}}, c
}

func TestExecNeverTakesAStrangeEndForSuccess(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		exit sandbox.Exit
		code int
	}{
		"success":     {sandbox.Exit{Code: new(0)}, 0},
		"signal":      {sandbox.Exit{Code: new(137), Signal: "SIGKILL"}, 137},
		"the largest": {sandbox.Exit{Code: new(255)}, 255},
		"unseen":      {sandbox.Exit{}, 125},
		"a byte more": {sandbox.Exit{Code: new(256)}, 125},
		"negative":    {sandbox.Exit{Code: new(-1)}, 125},
	} {
		b, _ := commanded(tc.exit)
		assert.Equal(t, tc.code, b.run(t, "exec prod/aaaa -- x").code, name)
	}
}

func TestExecTellsItsOwnKillFromOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, c := commanded(sandbox.Exit{Code: new(137), Signal: "SIGKILL"})
		c.wait = true
		assert.Equal(t, 124, b.run(t, "exec prod/aaaa --timeout 1s -- x").code)

		b, c = commanded(sandbox.Exit{Code: new(3)})
		c.wait = true
		assert.Equal(t, 3, b.run(t, "exec prod/aaaa --timeout 1s -- x").code, "it ended by itself at the same time")
	})
}

// TestExecEndsWithinASecondOfItsLimit, also where the kill of the command is not answered: a person waits.
func TestExecEndsWithinASecondOfItsLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, c := commanded(sandbox.Exit{})
		c.wait = true
		c.run = func(ctx context.Context, _ providers.Command) { time.Sleep(providers.CleanupLimit(ctx, 5*time.Second)) }
		began := time.Now()
		b.run(t, "exec prod/aaaa --timeout 2s -- x")
		assert.LessOrEqual(t, time.Since(began), 3*time.Second)
	})
}

func TestExecHandsRealStreamsOn(t *testing.T) {
	t.Parallel()
	b, c := commanded(sandbox.Exit{Code: new(0)})
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	require.NoError(t, err)
	defer null.Close()
	b.adjust = func(d *Deps) {
		d.Process.Stdin.File, d.Process.Stdout.File, d.Process.Stderr.File = null, null, null
	}
	require.Equal(t, 0, b.run(t, "exec -i --workdir /srv --env A=1 prod/aaaa -- x y").code)
	assert.Equal(t, []string{"x", "y"}, c.given.Args)
	assert.Equal(t, []string{"A=1"}, c.given.Env)
	assert.Equal(t, "/srv", c.given.Workdir)
	for _, stream := range []any{c.given.Stdin, c.given.Stdout, c.given.Stderr} {
		assert.Same(t, null, stream)
	}
	assert.Nil(t, c.given.TTY)

	require.Equal(t, 0, b.run(t, "exec prod/aaaa -- x").code)
	assert.Nil(t, c.given.Stdin, "nothing is read that was not asked for")
}

func TestExecWithATerminal(t *testing.T) {
	t.Parallel()
	for flags, want := range map[string]string{"-t": "size,sized", "-it": "raw,size,sized,restored"} {
		b, c := commanded(sandbox.Exit{Code: new(7)})
		b.tty = true
		told := ""
		tell := func(word string) {
			if told != "" {
				told += ","
			}
			told += word
		}
		changes := make(chan providers.Size)
		b.adjust = func(d *Deps) {
			d.RawTerminal = func() (func(), error) { tell("raw"); return func() { tell("restored") }, nil }
			d.Size = func() (providers.Size, <-chan providers.Size, func()) {
				tell("size")
				return providers.Size{Columns: 80, Rows: 24}, changes, func() { tell("sized") }
			}
		}
		assert.Equal(t, 7, b.run(t, "exec "+flags+" prod/aaaa -- sh").code)
		assert.Equal(t, want, told, "%s: without -i Ctrl-C stays a signal", flags)
		require.NotNil(t, c.given.TTY)
		assert.Equal(t, "xterm", c.given.TTY.Term)
		assert.Equal(t, providers.Size{Columns: 80, Rows: 24}, c.given.TTY.Size)
		assert.Equal(t, (<-chan providers.Size)(changes), c.given.TTY.Resize)
	}
}

func TestExecWithoutARawTerminal(t *testing.T) {
	t.Parallel()
	b, c := commanded(sandbox.Exit{Code: new(0)})
	b.tty = true
	b.adjust = func(d *Deps) { d.RawTerminal = func() (func(), error) { return nil, errors.New("not a tty") } }
	r := b.run(t, "exec -it prod/aaaa -- sh")
	assert.Equal(t, 125, r.code)
	assert.Contains(t, r.stderr, "the terminal cannot be handed over")
	assert.Empty(t, c.given.Args, "nothing was run")
}

func TestExecNeverShowsValues(t *testing.T) {
	t.Parallel()
	const secret = "hunter2-hunter2"
	b, p := oneFake(running("aaaa", time.Minute))
	p.Break(fake.Fault{Op: fake.OpExec, Err: fault.New(fault.KindUnavailable, "TOKEN=%s was refused", secret)})
	r := b.run(t, "exec prod/aaaa --env TOKEN="+secret+" -- true")
	assert.Contains(t, r.stderr, "was refused")
	assert.NotContains(t, r.stderr, secret)
}

func TestExecWritesWhereTheReaderHasGone(t *testing.T) {
	t.Parallel()
	b, _ := oneFake(running("aaaa", time.Minute))
	b.adjust = printTo(closedPipe{})
	r := b.run(t, "exec prod/aaaa -- echo x")
	require.ErrorIs(t, r.err, output.ErrClosed)
	assert.Empty(t, r.stderr)
}

// closedPipe is a stdout whose reader has gone.
type closedPipe struct{}

func (closedPipe) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestExecCompletes(t *testing.T) {
	t.Parallel()
	b, _ := oneFake(running("aaaa", time.Minute))
	assert.Contains(t, b.runArgs(t, "__complete", "exec", "").stdout, "prod/aaaa\trunning")
	assert.NotContains(t, b.runArgs(t, "__complete", "exec", "prod/aaaa", "").stdout, "prod/aaaa")
}
