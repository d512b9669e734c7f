package guest

// runner is the text that stays beside the program and sees its end. It is given
// the folder, the workdir, the caller's umask, the sizes and the program. The
// program leads a session, so that it can be killed with all it has started and
// without the runner; whoever leaves that session is known by SBX_RUN.
//
// What a shell starts by & ignores SIGINT and SIGQUIT, and no shell can take that back
// (POSIX, trap): env or perl give the program the default again. Where neither can, it
// goes on ignoring them.
const runner = `d=$1 w=$2 u=$3 block=$4 count=$5 full=$6
shift 6
umask 077
` + runnerParts + `
echo "$$ $(birth $$) $(boot)" > "$d/runner.new" && mv "$d/runner.new" "$d/runner" || exit 125
{ echo "started $(date +%s)"; counters | sed 's/^/before /'; } > "$d/begin"
[ -z "$w" ] || CDPATH= cd -- "$w" 2>> "$d/err.0" || finish 125
mkfifo "$d/o" "$d/e" 2>> "$d/err.0" || finish 125
keep out < "$d/o" & a=$!
keep err < "$d/e" & b=$!
case $1 in
*=*) ;;
*)
  if env --default-signal=INT,QUIT sh -c : 2>/dev/null
  then set -- env --default-signal=INT,QUIT "$@"
  elif command -v perl >/dev/null 2>&1
  then set -- perl -e '$SIG{INT}=$SIG{QUIT}="DEFAULT"; exec {$ARGV[0]} @ARGV or exit($!{ENOENT}?127:126)' "$@"
  fi
esac
set -- 'umask "$1"; SBX_RUN=$2; export SBX_RUN; shift 2; exec "$@"' sbx "$u" "$d/" "$@"
if command -v setsid >/dev/null 2>&1
then setsid sh -c "$@" > "$d/o" 2> "$d/e" & p=$!
else set -m 2>/dev/null; sh -c "$@" > "$d/o" 2> "$d/e" & p=$!; set +m 2>/dev/null
fi
echo "$p $(birth $p) $(boot)" > "$d/pid.new"; mv "$d/pid.new" "$d/pid"
wait $p; c=$?
i=0
while { [ -n "$(birth $a)" ] || [ -n "$(birth $b)" ]; } && [ $i -lt 20 ]
do sleep 0.05 2>/dev/null || { sleep 1; i=20; }; i=$((i+1)); done
rm -f "$d/o" "$d/e"
finish $c
`

// runnerParts: finish writes what is known of the end, over the room that Launch
// took while there was some. keep copies a stream into files that are named by
// the offset of their first byte. It reads with dd, which takes no more than it
// copies and copies what it has; the files are dropped oldest first. Where no
// byte can be written any more, it says so and lets the program go on. A program that
// holds back waits until the file that is to go was read.
const runnerParts = `finish() {
  { echo "code $1"; echo "ended $(date +%s)"; counters | sed 's/^/after /'; } 1<> "$d/code.new"
  mv -f "$d/code.new" "$d/code"
  exit 0
}
hold() {
  while [ -e "$d/hold" ] && [ -z "$(find "$d/hold" -prune -mmin +1 2>/dev/null)" ]; do
    seen=0
    { read -r seen < "$d/$name.seen"; } 2>/dev/null
    [ "$seen" -lt "$1" ] || return
    sleep 0.05 2>/dev/null || sleep 1
  done
}
keep() {
  name=$1 at=0 size=0
  set -- 0
  while :; do
    was=$size
    dd bs=$block count=$count 2>/dev/null >> "$d/$name.$at" || mkdir "$d/$name.cut" 2>/dev/null
    size=$(($(wc -c < "$d/$name.$at")))
    [ $size -gt $was ] || break
    [ $size -ge $full ] || continue
    at=$((at+size)) size=0
    set -- "$@" $at
    [ $# -le 8 ] || { hold $2; rm -f "$d/$name.$1"; shift; }
  done
  cat > /dev/null
}
`
