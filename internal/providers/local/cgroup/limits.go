package cgroup

import (
	"errors"
	"fmt"
	"math"
	"strconv"
)

// ErrLimits is wrapped for invalid limits.
var ErrLimits = errors.New("impossible limits")

// Limits are what a group may use; zero means no limit.
type Limits struct {
	MemoryBytes int64   // of all processes together, page cache included
	PIDs        int64   // threads and processes at the same time
	CPU         float64 // cores, over periods of 100 ms
}

// cpuPeriod is the kernel's default accounting period, in microseconds; minQuota is the
// smallest quota that it accepts.
const (
	cpuPeriod = 100_000
	minQuota  = 1_000
)

func (l Limits) checkLimits() error {
	switch {
	case l.MemoryBytes < 0:
		return fmt.Errorf("%w: memory below zero", ErrLimits)
	case l.PIDs < 0:
		return fmt.Errorf("%w: pids below zero", ErrLimits)
	case l.CPU < 0 || math.IsNaN(l.CPU) || math.IsInf(l.CPU, 0):
		return fmt.Errorf("%w: cpu must be a number of cores", ErrLimits)
	}
	return nil
}

// cpuQuota is the CPU limit in microseconds per period.
func (l Limits) cpuQuota() int64 {
	return max(minQuota, int64(math.Round(l.CPU*cpuPeriod)))
}

// setting is one value to write into a group.
type setting struct {
	file, value string
	limit       string // what is not enforced when the write fails
	required    bool   // the group is useless without it
	ignorable   bool   // another setting covers it
}

// controllerSettings lists the settings of a controller in one hierarchy, in the order of
// writing.
//
// memory.oom.group stays 0: the kernel then kills only the process with the highest score,
// so that the death of a child is distinguishable from that of the main program.
func (l Limits) controllerSettings(v2 bool, controller string) []setting {
	n := strconv.FormatInt
	switch {
	case controller == "memory" && l.MemoryBytes > 0 && v2:
		return []setting{
			{file: "memory.max", value: n(l.MemoryBytes, 10), limit: "memory", required: true},
			{file: "memory.swap.max", value: "0", limit: "swap"},
			{file: "memory.oom.group", value: "0", ignorable: true},
		}
	case controller == "memory" && l.MemoryBytes > 0:
		return []setting{
			{file: "memory.limit_in_bytes", value: n(l.MemoryBytes, 10), limit: "memory", required: true},
			{file: "memory.swappiness", value: "0", ignorable: true},
			{file: "memory.memsw.limit_in_bytes", value: n(l.MemoryBytes, 10), limit: "swap"},
		}
	case controller == "pids" && l.PIDs > 0:
		return []setting{{file: "pids.max", value: n(l.PIDs, 10), limit: "pids"}}
	case controller == "cpu" && l.CPU > 0 && v2:
		return []setting{{file: "cpu.max", value: n(l.cpuQuota(), 10) + " " + strconv.Itoa(cpuPeriod), limit: "cpu"}}
	case controller == "cpu" && l.CPU > 0:
		return []setting{
			{file: "cpu.cfs_period_us", value: strconv.Itoa(cpuPeriod), limit: "cpu"},
			{file: "cpu.cfs_quota_us", value: n(l.cpuQuota(), 10), limit: "cpu"},
		}
	}
	return nil
}

// neededControllers lists the controllers of a sandbox. Memory is always one of them: its
// counters are the only proof of an OOM.
func (l Limits) neededControllers() []string {
	list := []string{"memory"}
	if l.PIDs > 0 {
		list = append(list, "pids")
	}
	if l.CPU > 0 {
		list = append(list, "cpu")
	}
	return list
}
