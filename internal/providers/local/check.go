package local

import (
	"context"
	"fmt"
	"os"
	"slices"

	"sbx/internal/providers"
	"sbx/internal/providers/local/cgroup"
	"sbx/internal/sandbox"
)

// Check reports to doctor what this machine offers to local sandboxes.
func (c *Client) Check(context.Context) []providers.Check {
	return slices.Concat([]providers.Check{c.checkStateFolder(), notABoundary()}, c.checkLimits(), c.checkAdmission())
}

func notABoundary() providers.Check {
	return providers.Check{
		Check: "security boundary", Verdict: sandbox.False, Info: true,
		Message: "local sandboxes access this machine's files and network with your rights",
		Hint:    "run only what you would run yourself; --isolate bwrap makes the file system read-only; run untrusted code at a remote provider",
	}
}

func (c *Client) checkStateFolder() providers.Check {
	check := providers.Check{Check: "state folder", Verdict: sandbox.True, Message: c.store.Root + " is writable"}
	err := os.MkdirAll(c.store.Root, 0o700)
	if err == nil {
		var probe *os.File
		if probe, err = os.CreateTemp(c.store.Root, ".probe.*"); err == nil {
			probe.Close()
			err = os.Remove(probe.Name())
		}
	}
	if err != nil {
		check.Verdict, check.Message = sandbox.False, err.Error()
		check.Hint = "make it writable for you, or name another with SBX_STATE_DIR"
	}
	return check
}

// checkLimits reports for each kind of enforcement whether it is available.
func (c *Client) checkLimits() []providers.Check {
	if !isSupported() {
		return []providers.Check{{
			Check: "local sandboxes", Verdict: sandbox.False, Message: "this system is neither Linux nor macOS",
			Hint: "use WSL2, or a remote provider",
		}}
	}
	host, err := cgroup.Detect(c.cgroupRoots(), 0)
	if err != nil {
		return []providers.Check{{Check: "cgroups", Verdict: sandbox.Unknown, Message: err.Error(), Info: true}}
	}
	checks := []providers.Check{}
	best := sandbox.EnforcementWatch
	ok, why := c.scopeAvailable()
	for _, p := range append(host.Possible(), cgroup.Possibility{Enforcement: sandbox.EnforcementScope, OK: ok, Reason: why}) {
		check := providers.Check{Check: "limits by " + string(p.Enforcement), Verdict: sandbox.VerdictOf(p.OK), Message: p.Reason, Info: true}
		if p.OK {
			check.Message = "can enforce a hard memory limit"
			if !best.Hard() {
				best = p.Enforcement
			}
		}
		checks = append(checks, check)
	}
	summary := providers.Check{
		Check: "memory limit", Verdict: sandbox.VerdictOf(best.Hard()), Message: fmt.Sprintf("new sandboxes get %s", best), Info: true,
	}
	if !best.Hard() {
		summary.Hint = "a watchdog checks every 25 ms and kills what exceeds its limit; a fast program overshoots. For a hard limit, delegate a cgroup or start a systemd user session"
	}
	return append(checks, summary)
}

// scopeAvailable reports whether a systemd user scope can hold a sandbox.
func (c *Client) scopeAvailable() (bool, string) {
	return cgroup.ScopeAvailable(c.deps.Lookup, func(file string) error {
		_, err := os.Stat(file)
		return err
	})
}

// needsScope reports whether a systemd scope is the only way to a hard limit here.
func (c *Client) needsScope() bool {
	ok, _ := c.scopeAvailable()
	if !ok {
		return false
	}
	host, err := cgroup.Detect(c.cgroupRoots(), 0)
	return err == nil && !slices.ContainsFunc(host.Possible(), func(p cgroup.Possibility) bool { return p.OK })
}

func (c *Client) cgroupRoots() cgroup.Roots {
	return cgroup.Roots{Proc: "/proc", Owner: c.store.Owner()}
}
