package guest

import (
	"math"
	"strconv"
	"strings"
	"time"

	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// MeasureScript is a script that prints the use of resources of the sandbox, for ParseUsage. It
// prefers the figures of the control group to those of the machine.
//
// Its own cost must not count as work of the sandbox. So it reads the processor time twice itself, by
// builtins of the shell alone: between the two only `sleep` is started, and nothing is printed, which
// the service inside would have to carry. It does not count its own process.
const MeasureScript = `c=/sys/fs/cgroup
show() { [ -r "$2" ] && echo "$1 $(head -n 1 "$2")"; }
if [ -r $c/memory.current ]; then kind=cgroup2 pids=$c/pids.current
elif [ -r $c/memory/memory.usage_in_bytes ]; then kind=cgroup1 pids=$c/pids/pids.current
else kind=machine; fi
figures() {
  echo "source $kind"
  case $kind in
  cgroup2)
    show memory $c/memory.current; show limit $c/memory.max; show peak $c/memory.peak
    grep '^inactive_file ' $c/memory.stat
    grep '^oom_kill ' $c/memory.events
    sed -n 's/^max /refused /p' $c/pids.events;;
  cgroup1)
    show memory $c/memory/memory.usage_in_bytes; show limit $c/memory/memory.limit_in_bytes
    show peak $c/memory/memory.max_usage_in_bytes
    grep '^total_inactive_file ' $c/memory/memory.stat
    grep '^oom_kill ' $c/memory/memory.oom_control
    sed -n 's/^max /refused /p' $c/pids/pids.events;;
  machine)
    grep -E '^(MemTotal|MemAvailable):' /proc/meminfo
    echo "ticks $(getconf CLK_TCK || echo 100)"
    grep '^oom_kill ' /proc/vmstat;;
  esac
}
used() {
  case $kind in
  cgroup2) while read -r key n; do [ "$key" = usage_usec ] && break; done < $c/cpu.stat; n="usage_usec $n";;
  cgroup1) read -r n < $c/cpuacct/cpuacct.usage; n="usage_nsec $n";;
  machine) read -r n < /proc/stat;;
  esac
  read -r up rest < /proc/uptime
} 2>/dev/null
text=$(figures 2>/dev/null)
if [ $kind = machine ]; then set -- /proc/[0-9]*; count=$#
else { read -r count < $pids; } 2>/dev/null; fi
[ -z "$count" ] || text="$text
pids $((count - 1))"
used; first="$n
uptime $up"
sleep 1
used; echo "$text
$first
later 1
$n
uptime $up"
exit 0
`

// unlimited is the smallest limit that a control group without a limit reports.
const unlimited = math.MaxInt64 / 4096 * 2048

// ParseUsage reads the output of MeasureScript; At is now. Source is "probe command" with the
// origin of the figures: "cgroup2" and "cgroup1" are the control group of the sandbox,
// "machine" is the whole machine. Memory is the working set, without the page cache that
// can be dropped at once. CPUSeconds is cumulative and has the cost of the reader; CPUPercent has it
// not. A missing figure, and no limit, is nil. fault.KindUnavailable around ErrOutput for any other output.
func ParseUsage(text []byte, now time.Time) (sandbox.Usage, error) {
	n, later := map[string]float64{}, map[string]float64{}
	into, source := n, ""
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		switch {
		case len(words) < 2:
		case words[0] == "source":
			source = words[1]
		case words[0] == "later":
			into = later
		case words[0] == "cpu":
			into["cpu_ticks"] = busyTicks(words[1:])
		default:
			if v, err := strconv.ParseFloat(words[1], 64); err == nil && v >= 0 && !math.IsInf(v, 0) {
				into[strings.TrimSuffix(words[0], ":")] = v
			}
		}
	}
	if source != "cgroup2" && source != "cgroup1" && source != "machine" {
		return sandbox.Usage{}, outputFault("no figures")
	}
	u := sandbox.Usage{At: now, Source: "probe command (" + source + ")"}
	for name, to := range map[string]**int64{"peak": &u.MemoryPeakBytes, "pids": &u.PIDs, "oom_kill": &u.OOMKills, "refused": &u.TasksRefused} {
		v, ok := n[name]
		*to = toInt64(v, ok)
	}
	if source == "machine" {
		setMachineUsage(&u, n)
	} else {
		setGroupUsage(&u, n)
	}
	u.CPUPercent = cpuBetween(n, later)
	return u, nil
}

// cpuBetween is the processor time between two readings, in percent of a core; nil where it is not
// known. A machine counts whole ticks: one more or less is no proof of work.
func cpuBetween(before, after map[string]float64) *float64 {
	took := after["uptime"] - before["uptime"]
	for name, unit := range map[string]float64{"usage_usec": 1e6, "usage_nsec": 1e9, "cpu_ticks": before["ticks"]} {
		from, known := before[name]
		to, again := after[name]
		used := to - from
		if !known || !again || used < 0 || took <= 0 || unit <= 0 {
			continue
		}
		if name == "cpu_ticks" {
			used = max(0, used-1)
		}
		return providers.ValidPercent(new(100 * used / unit / took))
	}
	return nil
}

// busyTicks is the sum of the ticks in which a processor worked: user, nice, system, irq,
// softirq; not idle and iowait.
func busyTicks(fields []string) float64 {
	sum := 0.0
	for i, f := range fields {
		if v, err := strconv.ParseFloat(f, 64); err == nil && i != 3 && i != 4 && i < 8 {
			sum += v
		}
	}
	return sum
}

func setMachineUsage(u *sandbox.Usage, n map[string]float64) {
	if total, ok := n["MemTotal"]; ok {
		u.MemoryLimitBytes = toInt64(total*1024, true)
		available, ok := n["MemAvailable"]
		u.MemoryBytes = toInt64((total-available)*1024, ok)
	}
	if ticks, ok := n["cpu_ticks"]; ok && n["ticks"] > 0 {
		u.CPUSeconds = new(ticks / n["ticks"])
	}
}

func setGroupUsage(u *sandbox.Usage, n map[string]float64) {
	cache, known := n["inactive_file"] // v2
	if !known {
		cache, known = n["total_inactive_file"] // v1
	}
	if used, ok := n["memory"]; ok && known { // without that figure, all of it may be cache
		u.MemoryBytes = toInt64(max(0, used-cache), true)
	}
	limit, ok := n["limit"]
	u.MemoryLimitBytes = toInt64(limit, ok && limit > 0 && limit < unlimited)
	for name, unit := range map[string]float64{"usage_usec": 1e6, "usage_nsec": 1e9} {
		if v, ok := n[name]; ok {
			u.CPUSeconds = new(v / unit)
		}
	}
}

func toInt64(v float64, known bool) *int64 {
	if !known || v < 0 || v >= math.MaxInt64 {
		return nil
	}
	return new(int64(v))
}
