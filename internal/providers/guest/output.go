package guest

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Offsets are how many bytes of each stream have been read, dropped ones
// included.
type Offsets struct{ Out, Err int64 }

// MaxRead is how much of each stream one ReadOutput brings, in bytes.
const MaxRead = 256 << 10

// ReadOutput is a shell text that prints what a run has written since at, at most
// MaxRead of each stream; ParseOutput reads it. Without such a run it exits with
// ExitMissing.
func ReadOutput(tag string, at Offsets) string {
	return enter(tag) + fmt.Sprintf("out=%d err=%d most=%d\n", max(0, at.Out), max(0, at.Err), MaxRead) + readText
}

// readText looks at the state first: what was there at the end is then read with
// it.
const readText = `[ -d "$d" ] || exit 44
if [ -e "$d/code" ]; then echo "state ended"
elif [ -s "$d/runner" ] && kill -0 "$(cat "$d/runner")" 2>/dev/null; then echo "state running"
elif [ ! -s "$d/runner" ]; then echo "state running"
else echo "state lost"; fi
segment=$(cat "$d/segment" 2>/dev/null) || segment=0
encode() { if command -v base64 >/dev/null 2>&1; then echo base64; base64; else echo hex; od -An -v -tx1; fi; }
stream() {
  n=0; last=-1; first=-1
  for f in "$d/$1".*; do
    k=${f##*.}; [ -e "$f" ] || continue
    [ $last -lt $k ] && last=$k
    [ $first -lt 0 ] || [ $first -gt $k ] && first=$k
  done
  if [ $last -lt 0 ]; then echo "$1 $2 $2"; return; fi
  total=$((last*segment + $(wc -c < "$d/$1.$last")))
  start=$((first*segment)); from=$2
  [ $from -lt $start ] && from=$start
  echo "$1 $from $total"
  { k=$first; while [ $k -le $last ]; do cat "$d/$1.$k" 2>/dev/null; k=$((k+1)); done; } |
    tail -c +$((from-start+1)) | head -c $most | encode
  echo .
}
stream out $out
stream err $err
`

// Output is what ReadOutput brought.
type Output struct {
	Out, Err []byte
	Next     Offsets // where the next read begins
	// DroppedOut and DroppedErr are bytes that were not kept and come before Out
	// and Err.
	DroppedOut, DroppedErr int64
	More                   bool // there was more than one read may bring
	Ended                  bool // the program has ended, and nothing can follow what More has not said
	Lost                   bool // nobody is left who could see its end
}

// ErrOutput is what every refused answer of a text wraps.
var ErrOutput = errors.New("what the sandbox printed is not understood")

// ParseOutput reads what ReadOutput printed; at is what it was given.
func ParseOutput(text []byte, at Offsets) (Output, error) {
	var o Output
	lines := bytes.Split(text, []byte("\n"))
	if len(lines) == 0 || !bytes.HasPrefix(lines[0], []byte("state ")) {
		return o, fmt.Errorf("%w: no state", ErrOutput)
	}
	switch string(lines[0]) {
	case "state ended":
		o.Ended = true
	case "state lost":
		o.Ended, o.Lost = true, true
	}
	o.Next = at
	rest := lines[1:]
	var err error
	for _, s := range []struct {
		name    string
		at      int64
		data    *[]byte
		dropped *int64
		next    *int64
	}{{"out", at.Out, &o.Out, &o.DroppedOut, &o.Next.Out}, {"err", at.Err, &o.Err, &o.DroppedErr, &o.Next.Err}} {
		var c chunk
		if c, rest, err = parseChunk(rest, s.name); err != nil {
			return o, err
		}
		*s.data, *s.dropped, *s.next = c.data, max(0, c.from-s.at), c.from+int64(len(c.data))
		o.More = o.More || *s.next < c.total
	}
	return o, nil
}

// chunk is one stream's part of an answer.
type chunk struct {
	from, total int64
	data        []byte
}

func parseChunk(lines [][]byte, name string) (chunk, [][]byte, error) {
	refuse := func(why string) (chunk, [][]byte, error) {
		return chunk{}, nil, fmt.Errorf("%w: %s: %s", ErrOutput, name, why)
	}
	if len(lines) == 0 {
		return refuse("missing")
	}
	head := strings.Fields(string(lines[0]))
	if len(head) != 3 || head[0] != name {
		return refuse("no head")
	}
	from, errFrom := strconv.ParseInt(head[1], 10, 64)
	total, errTotal := strconv.ParseInt(head[2], 10, 64)
	if errFrom != nil || errTotal != nil || from < 0 || total < 0 {
		return refuse("no offsets")
	}
	c, lines := chunk{from: from, total: total}, lines[1:]
	if len(lines) == 0 || (string(lines[0]) != "base64" && string(lines[0]) != "hex") {
		return c, lines, nil // nothing was written
	}
	end := 1
	for end < len(lines) && string(lines[end]) != "." {
		end++
	}
	if end == len(lines) {
		return refuse("cut short")
	}
	data, err := decode(string(lines[0]), bytes.Join(lines[1:end], nil))
	if err != nil {
		return refuse(err.Error())
	}
	c.data = data
	return c, lines[end+1:], nil
}

func decode(encoding string, text []byte) ([]byte, error) {
	plain := strings.Join(strings.Fields(string(text)), "")
	if encoding == "hex" {
		return hex.DecodeString(plain)
	}
	return base64.StdEncoding.DecodeString(plain)
}
