package guest

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"sbx/internal/fault"
)

// Offsets are the bytes of each stream that were read or dropped so far.
type Offsets struct{ Out, Err int64 }

// MaxRead is how many bytes of each stream one ReadOutputScript prints at most.
const MaxRead = 256 << 10

// ReadOutputScript is a script that prints what a run has written behind the offsets, at most
// MaxRead of each stream, for ParseOutput. It also releases a program that HoldsBack up to
// these offsets. Its cost inside the sandbox does not depend on how much was written.
// Without such a run it exits with ExitMissing.
func ReadOutputScript(tag string, at Offsets) string {
	return enterRunDir(tag) + fmt.Sprintf("out=%d err=%d most=%d\n", max(0, at.Out), max(0, at.Err), MaxRead) + sharedFunctions + readText
}

// readText prints the state first, so that the output of a run that has ended is complete.
// It reads one file of a stream, from the block of the offset on. Last it prints how many seconds ago
// each stream was written, by the clock that has stamped its file: what is written meanwhile makes it newer.
const readText = `[ -d "$d" ] || exit 44
echo "state $(state "$d")"
` + streamFunctions + `stream out $out
o=$last
stream err $err
for f in "$d/out.$o" "$d/err.$last"; do
  at=$(stat -c %Y "$f" 2>/dev/null) || at=$(date -r "$f" +%s 2>/dev/null) || { echo written; continue; }
  echo "written $(($(date +%s)-at))"
done
exit 0
`

// streamFunctions are shell functions: stream prints what a stream has behind an offset, and sets $next to the offset behind
// that and $more where there is more. A file ends where the next one begins: wc of busybox reads all of it.
const streamFunctions = `encode() { if command -v base64 >/dev/null 2>&1; then echo base64; base64; else echo hex; od -An -v -tx1; fi; }
stream() {
  [ -e "$d/hold" ] && echo "$2" > "$d/$1.seen.new" && mv "$d/$1.seen.new" "$d/$1.seen" && touch "$d/hold"
  from=$2 next=$2 first= last= file=
  for f in "$d/$1".*; do
    k=${f##*.}
    case $k in *[!0-9]*) continue;; esac
    [ -n "$first" ] && [ $first -lt $k ] || first=$k
    [ -n "$last" ] && [ $last -gt $k ] || last=$k
    [ $k -gt $from ] || { [ -n "$file" ] && [ $file -gt $k ]; } || file=$k
  done
  [ -n "$last" ] || {
    [ ! -e "$d/pid" ] || [ -e "$d/code" ] && echo "$1 $2 0" || echo "$1 removed"
    return
  }
  [ $from -ge $first ] || { from=$first file=$first; }
  total=$((last + $(wc -c < "$d/$1.$last"))) next=$from
  [ -e "$d/$1.cut" ] && cut=cut || cut=
  echo "$1 $from $total $cut"
  [ $from -lt $total ] || return
  skip=$((from-file)) end=$total
  for f in "$d/$1".*; do
    k=${f##*.}
    case $k in *[!0-9]*) continue;; esac
    [ $k -le $file ] || [ $k -ge $end ] || end=$k
  done
  n=$((end-from))
  [ $n -le $most ] || n=$most
  dd if="$d/$1.$file" bs=4096 skip=$((skip/4096)) count=$((most/4096+1)) 2>/dev/null |
    tail -c +$((skip%4096+1)) | head -c $n | encode
  echo .
  next=$((from+n))
  [ $next -ge $total ] || more=1
}
`

// Output is the output of ReadOutputScript.
type Output struct {
	Out, Err []byte
	Next     Offsets // where the next read begins
	// DroppedOut and DroppedErr count the bytes before Out and Err that were not kept.
	DroppedOut, DroppedErr int64
	// Cut says that bytes could not be written, as on a full disk. Their number is not
	// known.
	Cut  bool
	More bool // there was more than MaxRead
	// Ended says that the program has ended. Processes that it left behind may still
	// write.
	Ended bool
	Lost  bool // the process that waits for its end is gone
	// Idle is for how long nothing was written, rounded down; nil where that cannot be told.
	Idle *time.Duration
}

// ReadOutputFrom reads what a run has written behind the offsets. Without such a run it is
// fault.KindNotFound around ErrNoRun.
func ReadOutputFrom(ctx context.Context, sh Shell, tag string, at Offsets) (Output, error) {
	return RunReadOnly(ctx, sh, ReadOutputScript(tag, at), func(printed []byte, code int) (Output, error) {
		if code == ExitMissing {
			return Output{}, fault.New(fault.KindNotFound, "%w", ErrNoRun)
		}
		return ParseOutput(printed, at)
	})
}

// ErrOutput is inside the error of any output that a script does not print.
var ErrOutput = errors.New("the output of a command in the sandbox is invalid")

// outputFault is the fault of an output that the script does not print.
func outputFault(format string, args ...any) error {
	return fault.New(fault.KindUnavailable, "%w: "+format, append([]any{ErrOutput}, args...)...).Inside().
		WithHint("a shell profile in the sandbox may print text, or it was restored to an earlier state")
}

// ParseOutput reads the output of ReadOutputScript for the offsets at. fault.KindUnavailable
// around ErrOutput for any other output, and where a stream has become shorter.
func ParseOutput(text []byte, at Offsets) (Output, error) {
	lines := bytes.Split(text, []byte("\n"))
	state, found := bytes.CutPrefix(lines[0], []byte("state "))
	if !found {
		return Output{}, outputFault("no state")
	}
	o := Output{Lost: string(state) == stateLost, Ended: string(state) == stateEnded || string(state) == stateLost}
	out, lines, err := parseChunk(lines[1:], "out", max(0, at.Out))
	if err != nil {
		return Output{}, err
	}
	errs, lines, err := parseChunk(lines, "err", max(0, at.Err))
	if err != nil {
		return Output{}, err
	}
	o.Idle = parseIdle(lines)
	o.Out, o.DroppedOut, o.Next.Out = out.data, out.dropped, out.nextOffset()
	o.Err, o.DroppedErr, o.Next.Err = errs.data, errs.dropped, errs.nextOffset()
	o.More, o.Cut = out.hasMore() || errs.hasMore(), out.cut || errs.cut
	return o, nil
}

// parseIdle reads the lines "written SECONDS" of both streams: the newer one counts. Both clocks are read in whole
// seconds, so that one may be too many. A file of the future shows that the clock was changed.
func parseIdle(lines [][]byte) *time.Duration {
	var idle *time.Duration
	n := 0
	for _, line := range lines {
		words := strings.Fields(string(line))
		if len(words) == 0 || words[0] != "written" {
			continue
		}
		if len(words) != 2 {
			return nil
		}
		seconds, err := strconv.ParseInt(words[1], 10, 32)
		if err != nil || seconds < 0 {
			return nil
		}
		n++
		if ago := time.Duration(max(0, seconds-1)) * time.Second; idle == nil || ago < *idle {
			idle = &ago
		}
	}
	if n != streams {
		return nil
	}
	return idle
}

// streams is the number of streams of a run.
const streams = 2

type chunk struct {
	from, total, dropped int64
	cut                  bool
	data                 []byte
}

func (c chunk) nextOffset() int64 { return c.from + int64(len(c.data)) }

// hasMore is false without data: the file was dropped while it was opened, and the next read
// finds what follows.
func (c chunk) hasMore() bool { return len(c.data) > 0 && c.nextOffset() < c.total }

// parseChunk reads one stream: a head "NAME FROM TOTAL [cut]" and, where there is data, the
// encoding, the encoded bytes and a dot. It returns the lines that follow.
func parseChunk(lines [][]byte, name string, at int64) (chunk, [][]byte, error) {
	if len(lines) == 0 {
		return chunk{}, nil, outputFault("%s is missing", name)
	}
	c, err := parseChunkHead(strings.Fields(string(lines[0])), name, at)
	if err != nil {
		return c, nil, err
	}
	lines = lines[1:]
	if len(lines) == 0 || (string(lines[0]) != "base64" && string(lines[0]) != "hex") {
		return c, lines, nil
	}
	end := 1
	for end < len(lines) && string(lines[end]) != "." {
		end++
	}
	if end == len(lines) {
		return c, nil, outputFault("%s is truncated", name)
	}
	if c.data, err = decodeBytes(string(lines[0]), bytes.Join(lines[1:end], nil)); err != nil {
		return c, nil, outputFault("%s: %v", name, err)
	}
	return c, lines[end+1:], nil
}

func parseChunkHead(head []string, name string, at int64) (chunk, error) {
	if len(head) == 2 && head[0] == name && head[1] == "removed" {
		return chunk{}, fault.New(fault.KindUnavailable, "%w: the files of its log were removed", ErrOutput).Inside()
	}
	if len(head) < 3 || head[0] != name {
		return chunk{}, outputFault("%s has no header", name)
	}
	from, errFrom := strconv.ParseInt(head[1], 10, 64)
	total, errTotal := strconv.ParseInt(head[2], 10, 64)
	switch {
	case errFrom != nil || errTotal != nil || from < at || from > maxOffset:
		return chunk{}, outputFault("%s has no offsets", name)
	case total < at:
		return chunk{}, outputFault("%s has %d bytes, %d were read before", name, total, at)
	}
	return chunk{from: from, total: total, dropped: from - at, cut: len(head) > 3 && head[3] == "cut"}, nil
}

// maxOffset keeps sums of offsets from overflowing.
const maxOffset = 1 << 60

func decodeBytes(encoding string, text []byte) ([]byte, error) {
	plain := strings.Join(strings.Fields(string(text)), "")
	if encoding == "hex" {
		return hex.DecodeString(plain)
	}
	return base64.StdEncoding.DecodeString(plain)
}
