package local

import (
	"strconv"
	"time"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// defaults are the limits of a sandbox that names none.
type defaults struct {
	memoryBytes int64
	cpu         float64 // cores
	pids        int64
	ttl         time.Duration
	outputBytes int64
}

func readDefaults(p providers.Profile) (defaults, error) {
	var d defaults
	var err error
	fail := func(key string, err error) (defaults, error) {
		return defaults{}, fault.Usage("providers.%s.%s: %w", p.Name, key, err)
	}
	if d.memoryBytes, err = sandbox.ParseSize(p.Settings["memory"]); err != nil {
		return fail("memory", err)
	}
	if d.outputBytes, err = sandbox.ParseSize(p.Settings["output"]); err != nil {
		return fail("output", err)
	}
	if d.ttl, err = sandbox.ParseDuration(p.Settings["ttl"]); err != nil {
		return fail("ttl", err)
	}
	if d.pids, err = strconv.ParseInt(p.Settings["pids"], 10, 32); err != nil || d.pids < 1 {
		return fail("pids", fault.Usage("%q is no positive whole number", p.Settings["pids"]))
	}
	if d.cpu, err = strconv.ParseFloat(p.Settings["cpu"], 64); err != nil || !(d.cpu > 0 && d.cpu <= maxCPU) {
		return fail("cpu", fault.Usage("%q is no number of cores", p.Settings["cpu"]))
	}
	return d, nil
}

// maxCPU is above any machine and far below what a quota file overflows at.
const maxCPU = 4096
