package guest

import "fmt"

// Offsets are how many bytes of each stream have been read, dropped ones
// included.
type Offsets struct{ Out, Err int64 }

// MaxRead is how much of each stream one ReadOutput brings, in bytes.
const MaxRead = 256 << 10

// ReadOutput is a shell text that prints what a run has written since at, at most
// MaxRead of each stream; ParseOutput reads it. A program that holds back learns from
// it how far its output was read. What it costs inside the sandbox
// does not depend on how much has been written. Without such a run it exits with
// ExitMissing.
func ReadOutput(tag string, at Offsets) string {
	return enter(tag) + fmt.Sprintf("out=%d err=%d most=%d\n", max(0, at.Out), max(0, at.Err), MaxRead) + parts + readText
}

// readText looks at the state first: what was there at the end is then read with
// it. It reads from one file of a stream, from the block that the offset is in.
const readText = `[ -d "$d" ] || exit 44
echo "state $(state "$d")"
encode() { if command -v base64 >/dev/null 2>&1; then echo base64; base64; else echo hex; od -An -v -tx1; fi; }
stream() {
  [ -e "$d/hold" ] && echo "$2" > "$d/$1.seen.new" && mv "$d/$1.seen.new" "$d/$1.seen" && touch "$d/hold"
  from=$2 first= last= file=
  for f in "$d/$1".*; do
    k=${f##*.}
    case $k in *[!0-9]*) continue;; esac
    [ -n "$first" ] && [ $first -lt $k ] || first=$k
    [ -n "$last" ] && [ $last -gt $k ] || last=$k
    [ $k -gt $from ] || { [ -n "$file" ] && [ $file -gt $k ]; } || file=$k
  done
  [ -n "$last" ] || { echo "$1 $2 0"; return; }
  [ $from -ge $first ] || { from=$first file=$first; }
  total=$((last + $(wc -c < "$d/$1.$last")))
  [ -e "$d/$1.cut" ] && cut=cut || cut=
  echo "$1 $from $total $cut"
  [ $from -lt $total ] || return
  skip=$((from-file))
  dd if="$d/$1.$file" bs=4096 skip=$((skip/4096)) count=$((most/4096+1)) 2>/dev/null |
    tail -c +$((skip%4096+1)) | head -c $most | encode
  echo .
}
stream out $out
stream err $err
exit 0
`
