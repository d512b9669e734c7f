package guest

import (
	"math"
	"strconv"
	"strings"
	"time"

	"sbx/internal/sandbox"
)

// MeasureScript is a script that prints the use of resources of the sandbox, for ParseUsage. It
// prefers the figures of the control group to those of the machine.
const MeasureScript = `c=/sys/fs/cgroup
show() { [ -r "$2" ] && echo "$1 $(head -n 1 "$2")"; }
if [ -r $c/memory.current ]; then
  echo "source cgroup2"
  show memory $c/memory.current; show limit $c/memory.max; show peak $c/memory.peak; show pids $c/pids.current
  grep '^inactive_file ' $c/memory.stat 2>/dev/null
  grep '^usage_usec ' $c/cpu.stat 2>/dev/null
  grep '^oom_kill ' $c/memory.events 2>/dev/null
  sed -n 's/^max /refused /p' $c/pids.events 2>/dev/null
elif [ -r $c/memory/memory.usage_in_bytes ]; then
  echo "source cgroup1"
  show memory $c/memory/memory.usage_in_bytes; show limit $c/memory/memory.limit_in_bytes
  show peak $c/memory/memory.max_usage_in_bytes; show pids $c/pids/pids.current; show usage_nsec $c/cpuacct/cpuacct.usage
  grep '^total_inactive_file ' $c/memory/memory.stat 2>/dev/null
  grep '^oom_kill ' $c/memory/memory.oom_control 2>/dev/null
  sed -n 's/^max /refused /p' $c/pids/pids.events 2>/dev/null
else
  echo "source machine"
  grep -E '^(MemTotal|MemAvailable):' /proc/meminfo 2>/dev/null
  head -n 1 /proc/stat 2>/dev/null
  echo "ticks $(getconf CLK_TCK 2>/dev/null || echo 100)"
  grep '^oom_kill ' /proc/vmstat 2>/dev/null
  set -- /proc/[0-9]*; echo "pids $#"
fi
exit 0
`

// unlimited is the smallest limit that a control group without a limit reports.
const unlimited = math.MaxInt64 / 4096 * 2048

// ParseUsage reads the output of MeasureScript; At is now. Source is "probe command" with the
// origin of the figures: "cgroup2" and "cgroup1" are the control group of the sandbox,
// "machine" is the whole machine. Memory is the working set, without the page cache that
// can be dropped at once. CPU is cumulative, in seconds. A missing figure, and no limit,
// is nil. fault.KindUnavailable around ErrOutput for any other output.
func ParseUsage(text []byte, now time.Time) (sandbox.Usage, error) {
	n := map[string]float64{}
	source := ""
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		switch {
		case len(words) < 2:
		case words[0] == "source":
			source = words[1]
		case words[0] == "cpu":
			n["cpu_ticks"] = busyTicks(words[1:])
		default:
			if v, err := strconv.ParseFloat(words[1], 64); err == nil && v >= 0 && !math.IsInf(v, 0) {
				n[strings.TrimSuffix(words[0], ":")] = v
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
		return u, nil
	}
	setGroupUsage(&u, n)
	return u, nil
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
	if used, ok := n["memory"]; ok {
		u.MemoryBytes = toInt64(max(0, used-n["inactive_file"]-n["total_inactive_file"]), true)
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
