package guest

import (
	"regexp"

	"al.essio.dev/pkg/shellescape"
)

// ValidTag says that a word may name a run: letters, digits, dots and dashes, at
// most 64, the first no dot or dash.
func ValidTag(tag string) bool {
	return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.-]{0,63}$`).MatchString(tag)
}

// folder is where the runs of a user's sandbox are kept, as a shell word.
const folder = `"${HOME:-/tmp}/.sbx/runs"`

// enter is the first line of a text about a run: $d is its folder. What may not
// name a run makes a text that only refuses.
func enter(tag string) string {
	if tag == "" {
		tag = Main
	}
	if !ValidTag(tag) {
		return misuse("this cannot name a run: " + tag)
	}
	return "d=" + folder + "/" + shellescape.Quote(tag) + "\n"
}

func misuse(why string) string {
	return "echo " + shellescape.Quote(why) + " >&2; exit 64\n"
}

// parts are the shell functions that the texts share.
//
// A process is known by number, start and boot: a number alone may belong to
// somebody else by now, above all after a sandbox was stopped and started again.
// One that only waits for its parent to take note is dead: in a sandbox the
// first process often never does.
const parts = `birth() {
  [ -e /proc/self/stat ] || { kill -0 "$1" 2>/dev/null && echo 0; return; }
  { IFS= read -r stat < "/proc/$1/stat"; } 2>/dev/null || return
  set -- ${stat##*) }
  case $1 in Z|X|x) ;; *) echo "${20}";; esac
}
boot() { cat /proc/sys/kernel/random/boot_id 2>/dev/null || echo none; }
alive() {
  [ -r "$1" ] && { read -r pid born on < "$1"; } 2>/dev/null || return
  [ -n "$on" ] && [ "$on" = "$(boot)" ] && [ "$(birth "$pid")" = "$born" ] && echo "$pid"
}
state() {
  watched=$(alive "$1/runner")$(alive "$1/pid")
  if [ -e "$1/code" ]; then echo ended
  elif [ -n "$watched" ]; then echo running
  elif [ ! -e "$1/runner" ] && [ -z "$(find "$1" -prune -mmin +1 2>/dev/null)" ]; then echo running
  else echo lost; fi
}
`

// counters is a shell function that prints what the kernel counts of memory for
// the sandbox: of its whole group, of the caller's group where the machine is the
// sandbox's own, or of that machine.
const counters = `counters() {
  c=/sys/fs/cgroup
  own=$(sed -n 's/^0:://p' /proc/self/cgroup 2>/dev/null)
  old=$(sed -n 's/^[0-9]*:\([^:]*,\)*memory\(,[^:]*\)*://p' /proc/self/cgroup 2>/dev/null)
  for g in $c "$c$own"; do
    [ -r "$g/memory.events" ] || continue
    echo "file $g/memory.events"
    grep '^oom_kill ' "$g/memory.events"
    for k in peak max; do [ -r "$g/memory.$k" ] && echo "$k $(cat "$g/memory.$k")"; done
    return
  done
  for g in "$c/memory$old" $c/memory; do
    grep -q '^oom_kill ' "$g/memory.oom_control" 2>/dev/null || continue
    echo "file $g/memory.oom_control"
    grep '^oom_kill ' "$g/memory.oom_control"
    echo "peak $(cat "$g/memory.max_usage_in_bytes")"
    echo "max $(cat "$g/memory.limit_in_bytes")"
    return
  done
  grep -q '^oom_kill ' /proc/vmstat 2>/dev/null && { echo "file /proc/vmstat"; grep '^oom_kill ' /proc/vmstat; }
}
`
