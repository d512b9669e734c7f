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
	return slices.Concat([]providers.Check{c.checkState(), notABoundary()}, c.checkLimits(), c.checkAdmission())
}

func notABoundary() providers.Check {
	return providers.Check{
		Check: "security boundary", Verdict: sandbox.False, Info: true,
		Message: "local sandboxes see this machine's files and network with your rights",
		Hint:    "run only what you would run yourself; --isolate bwrap makes the filesystem read-only; untrusted code belongs to a remote provider",
	}
}

func (c *Client) checkState() providers.Check {
	check := providers.Check{Check: "state folder", Verdict: sandbox.True, Message: c.store.Root + " can be written"}
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
		check.Hint = "make it yours to write, or name another with SBX_STATE_DIR"
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
	for _, p := range host.Possible() {
		check := providers.Check{Check: "limits by " + string(p.Enforcement), Verdict: sandbox.VerdictOf(p.OK), Message: p.Reason, Info: true}
		if p.OK {
			check.Message = "can hold a hard memory limit"
			if !best.Hard() {
				best = p.Enforcement
			}
		}
		checks = append(checks, check)
	}
	if ok, why := c.scopeAvailable(); ok {
		checks = append(checks, providers.Check{Check: "limits by systemd-scope", Verdict: sandbox.True, Message: "can hold a hard memory limit", Info: true})
		if !best.Hard() {
			best = sandbox.EnforcementScope
		}
	} else {
		checks = append(checks, providers.Check{Check: "limits by systemd-scope", Verdict: sandbox.False, Message: why, Info: true})
	}
	summary := providers.Check{
		Check: "memory limit", Verdict: sandbox.VerdictOf(best.Hard()), Message: fmt.Sprintf("new sandboxes get %s", best), Info: true,
	}
	if !best.Hard() {
		summary.Hint = "a watchdog looks every 25 ms and kills what is over its limit; a fast program overshoots. Delegate a cgroup, or start a systemd user session, for a hard limit"
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
