//go:build unix

package supervisor

import (
	"errors"
	"strings"

	"sbx/internal/providers/local/cgroup"
	"sbx/internal/providers/local/record"
	"sbx/internal/sandbox"
)

// makeGroup makes the strongest group that this machine allows. Without one it
// says which softer means remains, and why.
func makeGroup(owner, id string, inScope bool, l record.Limits) (*cgroup.Group, sandbox.Enforcement, string) {
	group, err := tryGroup(owner, id, inScope, l)
	if err == nil {
		return group, group.Enforcement(), missing(group)
	}
	if l.MemoryBytes > 0 {
		return nil, sandbox.EnforcementWatch, err.Error()
	}
	return nil, sandbox.EnforcementNone, err.Error()
}

func tryGroup(owner, id string, inScope bool, l record.Limits) (*cgroup.Group, error) {
	host, err := cgroup.Detect(cgroup.Roots{Proc: "/proc", Owner: owner}, 0)
	if err != nil {
		return nil, err
	}
	if inScope {
		group, err := cgroup.OwnScope(host, id)
		if !errors.Is(err, cgroup.ErrNoScope) {
			return group, err
		}
	}
	return cgroup.Create(host, id, cgroup.Limits{MemoryBytes: l.MemoryBytes, PIDs: l.PIDs, CPU: l.CPU})
}

// missing names the limits of another kind that nothing enforces.
func missing(g *cgroup.Group) string {
	var words []string
	for _, m := range g.Missing() {
		words = append(words, m.Limit+" not limited: "+m.Reason)
	}
	return strings.Join(words, "; ")
}
