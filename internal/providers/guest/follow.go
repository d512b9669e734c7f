package guest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"sync"
	"time"

	"sbx/internal/fault"
	"sbx/internal/poll"
	"sbx/internal/providers"
	"sbx/internal/providers/wirekit"
	"sbx/internal/sandbox"
)

// Stream is a Shell that passes the output of a script on while it runs.
type Stream func(ctx context.Context, text string, out io.Writer) (code int, err error)

const (
	// followRounds is how often a FollowScript looks before it ends, so that one whose client has left does not stay: five
	// minutes or more, for which Podman keeps what it has ended.
	followRounds = 600
	// quietLimit is how long a FollowScript may print nothing: it prints twice a second. Podman leaves the stream of a command
	// open whose container has stopped.
	quietLimit = 10 * time.Second
	// printedLately is how long what it has printed is true of the present.
	printedLately = 6 * time.Second
)

// FollowScript is a script that prints what ReadOutputScript prints, again and again, each time with the line "-next"
// behind it, and at the end of the run its exit between "-exit" and "-done": no encoded output is such a line. It is one process for many looks: some engines
// keep processes of their own for minutes for each that they start.
func FollowScript(tag string, at Offsets) string {
	return enterRunDir(tag) + fmt.Sprintf(
		"out=%d err=%d most=%d rounds=%d\n", max(0, at.Out), max(0, at.Err), MaxRead, followRounds,
	) + sharedFunctions + counterFunction + streamFunctions + followText + "(" + exitText + ")\n" + followEnd
}

// followText starts no processes but a sleep while nothing is written, since they count as work of the sandbox: it reads again
// what is not older than the file $seen, which it writes before it reads. Whether the process that waits for the end still
// lives, which takes several processes, it asks in each twentieth round only.
const followText = `[ -d "$d" ] || exit 44
t=0 calm=0 o= e= unread= seen="$d/.seen.$$"
quiet() {
  [ $s = running ] && [ -z "$unread" ] && [ -n "$o" ] && [ -n "$e" ] && [ ! -e "$d/hold" ] &&
    [ "$seen" -nt "$d" ] && [ "$seen" -nt "$d/out.$o" ] && [ "$seen" -nt "$d/err.$e" ]
} 2>/dev/null
while :; do
  more=
  if [ -e "$d/code" ]; then s=ended; elif [ $((t%20)) = 0 ]; then s=$(state "$d"); fi
  echo "state $s"
  if quiet; then
    calm=$((calm+1))
    echo "out $out $out"
    echo "err $err $err"
  else
    calm=0
    { true > "$seen"; } 2>/dev/null
    stream out $out; out=$next o=$last
    stream err $err; err=$next e=$last unread=$more
  fi
  echo -next
  [ -z "$more" ] || continue
  [ $s = running ] || break
  t=$((t+1))
  [ $t -lt $rounds ] || { rm -f "$seen"; exit 0; }
  [ $calm -lt 10 ] && sleep 0.5 2>/dev/null || sleep 1
done
rm -f "$seen"
echo -exit
`

const followEnd = `echo -done
exit 0
`

// Watches know what the scripts have said that a client follows, by sandbox: nobody needs to ask again.
type Watches struct{ all sync.Map } // id -> *watch

type watch struct {
	mu    sync.Mutex
	until time.Time     // what is known now is known until then; zero = nobody has followed it
	exit  *sandbox.Exit // of the run, once it has ended
}

func (w *Watches) of(id string) *watch {
	one, _ := w.all.LoadOrStore(id, &watch{})
	return one.(*watch) //nolint:forcetypeassert,errcheck // it holds nothing else
}

// Exit is how the main run of a sandbox has ended, nil while it runs; false = nobody follows it.
func (w *Watches) Exit(id string) (exit *sandbox.Exit, known bool) {
	one := w.of(id)
	one.mu.Lock()
	defer one.mu.Unlock()
	return one.exit, one.exit != nil || time.Now().Before(one.until)
}

// shortPause is more than the start of a command that follows a program takes to begin.
const shortPause = 50 * time.Millisecond

// ExitSoon is Exit where the program was started a moment ago (young), and whoever has made it may be about to follow it.
func (w *Watches) ExitSoon(ctx context.Context, id string, young bool) (exit *sandbox.Exit, known bool) {
	if young {
		_ = poll.Sleep(ctx, shortPause) // the command inside ends with ctx
	}
	return w.Exit(id)
}

// Begin says that a script is about to follow a sandbox for the first time: nobody needs to ask until it has had time to
// answer, or until End.
func (w *Watches) Begin(id string) {
	if one := w.of(id); one.isNew() {
		one.keepFor(quietLimit)
	}
}

// End says that nobody follows a sandbox.
func (w *Watches) End(id string) { w.of(id).keepFor(0) }

func (w *watch) isNew() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.until.IsZero()
}

// keepFor makes what is known hold for so long.
func (w *watch) keepFor(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.until = time.Now().Add(d)
}

func (w *watch) conclude(exit *sandbox.Exit) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.exit = exit
}

// errEnough is the error of a reader that wants no more.
var errEnough = errors.New("the reader wants no more")

// Follow is Logs that follows the main run of a sandbox by one script that goes on.
func (w *Watches) Follow(ctx context.Context, id string, sh Stream, q providers.LogQuery) iter.Seq2[sandbox.LogLine, error] {
	return func(yield func(sandbox.LogLine, error) bool) {
		f := &follower{
			logReader: logReader{
				tag: MainTag, open: q.Open, out: wirekit.LineSplitter{Stream: "stdout", Source: Source},
				err: wirekit.LineSplitter{Stream: "stderr", Source: Source},
			},
			watch: w.of(id), query: q, yield: yield,
		}
		pauses, answered := poll.NewBackoff(followMin, followMax), time.Now()
		for {
			before := f.blocks
			err := f.follow(ctx, sh)
			f.watch.keepFor(0)
			if f.blocks > before {
				answered = time.Now()
				pauses.Reset()
			}
			switch {
			case errors.Is(err, errEnough), err == nil && f.ended:
				return
			case ctx.Err() != nil:
				yield(sandbox.LogLine{}, wirekit.ContextFault(ctx))
				return
			case wirekit.Missing(err) && f.blocks > 0: // the sandbox is gone
				f.flushPartial()
				wirekit.YieldLines(f.takeLines(), yield)
				return
			case err != nil && (fault.KindOf(err) != fault.KindUnavailable || time.Since(answered) >= followOutage):
				yield(sandbox.LogLine{}, err)
				return
			case err != nil && pauses.Sleep(ctx) != nil:
			}
		}
	}
}

// follower reads the output of FollowScript.
type follower struct {
	logReader

	watch  *watch
	query  providers.LogQuery
	yield  func(sandbox.LogLine, error) bool
	blocks int
	begun  bool // what was there at the start was given
}

// follow runs one script to its end.
func (f *follower) follow(ctx context.Context, sh Stream) error {
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	quiet := time.AfterFunc(quietLimit, func() {
		cancel(fault.New(fault.KindUnavailable, "it did not respond within %s", quietLimit).Inside())
	})
	defer quiet.Stop()
	from, to := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		code, err := sh(inner, FollowScript(f.tag, f.at), to)
		if err == nil && code == ExitMissing {
			err = fault.New(fault.KindNotFound, "%w", ErrNoRun)
		} else if err == nil && code != 0 {
			err = outputFault("the script exits with %d", code)
		}
		_ = to.Close()
		ended <- err
	}()
	err := f.readBlocks(bufio.NewReader(from), func() { quiet.Reset(quietLimit) })
	_ = from.Close()
	if err != nil {
		cancel(err)
	}
	if failed := <-ended; err == nil {
		err = failed
	}
	if cause := context.Cause(inner); cause != nil && ctx.Err() == nil {
		return cause
	}
	return err
}

// readBlocks takes block after block until the stream ends.
func (f *follower) readBlocks(from *bufio.Reader, heard func()) error {
	var block bytes.Buffer
	for {
		line, err := from.ReadBytes('\n')
		switch {
		case err != nil:
			return nil //nolint:nilerr // how the script has ended says more
		case string(line) == "-next\n":
			heard()
			if err := f.takeBlock(block.Bytes()); err != nil {
				return err
			}
		case string(line) == "-exit\n":
		case string(line) == "-done\n":
			exit, err := ParseExit(block.Bytes())
			if err != nil {
				return err
			}
			err = f.finish()
			f.watch.conclude(exit)
			return err
		default:
			block.Write(line)
			continue
		}
		block.Reset()
	}
}

// takeBlock takes one look. The end of the run is given when its exit is known.
func (f *follower) takeBlock(text []byte) error {
	o, err := ParseOutput(text, f.at)
	if err != nil {
		return err
	}
	f.blocks++
	f.take(o)
	if !o.Ended {
		f.watch.keepFor(printedLately)
	}
	if f.ended = false; o.Ended || !f.begun && o.More {
		return nil
	}
	return f.give()
}

func (f *follower) finish() error {
	f.ended = true
	f.flushPartial()
	return f.give()
}

// give gives the lines that have come, of those that were there at the start the last ones.
func (f *follower) give() error {
	if !f.begun {
		f.begun = true
		f.lines = wirekit.LastLines(f.lines, f.query.Tail)
		if f.query.Since.After(time.Now()) {
			f.lines = nil
		}
	}
	f.reportGrowth()
	if !wirekit.YieldLines(f.takeLines(), f.yield) {
		return errEnough
	}
	return nil
}
