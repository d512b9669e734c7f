package local

import (
	"context"
	"os"
	"path"
	"strconv"
	"strings"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/providers/local/cgroup"
	"sbx/internal/sandbox"
)

var _ providers.Admitter = (*Client)(nil)

const (
	// untouched is what stays free for everything else, as far as a tenth of all
	// memory is less.
	untouched = 1 << 30
	// mostPressure is the share of the last 10 s, in percent, from which waiting
	// for memory keeps further sandboxes out.
	mostPressure = 10
)

// Admit says no while a sandbox of this size would leave less than 1 GiB and less
// than a tenth of this machine's memory, or of what a control group around the
// sandbox allows (sbx in a container), and while memory is under pressure. Of
// little memory, half stays untouched. What this machine does not tell, or tells
// unreadably, refuses nothing: Check names it.
func (c *Client) Admit(ctx context.Context, memoryBytes int64) error {
	if err := ctx.Err(); err != nil {
		return c.trouble("admit", err)
	}
	switch {
	case memoryBytes < 0:
		return fault.Usage("a sandbox of %d bytes", memoryBytes).At(c.name, "admit").WithHint("0 is the profile's own default")
	case memoryBytes == 0:
		memoryBytes = c.defaults.memoryBytes
	}
	why, _ := look(cgroup.Roots{Proc: "/proc", Owner: c.store.Owner()}).refuses(memoryBytes)
	if why == "" {
		return nil
	}
	return fault.New(fault.KindRefused, "%s", why).At(c.name, "admit").
		WithHint("wait, end sandboxes that nobody needs (`sbx ls --provider %s --sort age`), or ask for less memory", c.name)
}

// fits refuses a size that this machine never has free.
func (c *Client) fits(memoryBytes int64) error {
	for _, r := range look(cgroup.Roots{Proc: "/proc", Owner: c.store.Owner()}).rooms {
		if most := r.total - r.kept(); memoryBytes > most {
			return fault.Usage("%s is wanted, and of %s %s no sandbox gets more than %s", sizeText(memoryBytes), r.whose, sizeText(r.total), sizeText(most)).
				At(c.name, "create").WithHint("give it less with --memory")
		}
	}
	return nil
}

// checkAdmission says for doctor whether a sandbox of the default size may start
// now, and what of that cannot be known.
func (c *Client) checkAdmission() []providers.Check {
	return []providers.Check{c.checkRoom(look(cgroup.Roots{Proc: "/proc", Owner: c.store.Owner()}))}
}

func (c *Client) checkRoom(a admission) providers.Check {
	check := providers.Check{Check: "room for a sandbox", Verdict: sandbox.True, Message: "one of " + sizeText(c.defaults.memoryBytes) + " may start now", Info: true}
	why, unknown := a.refuses(c.defaults.memoryBytes)
	switch {
	case why != "":
		check.Verdict, check.Message = sandbox.False, why
	case len(unknown) > 0:
		check.Verdict, check.Message = sandbox.Unknown, "one may start, but this is not known: "+strings.Join(unknown, ", ")
	}
	return check
}

// room is memory that sandboxes share, with each other and with what else is there.
type room struct {
	whose       string // "this machine's"
	total, free int64  // bytes
}

// kept is what of a room no sandbox gets.
func (r room) kept() int64 { return min(max(untouched, r.total/10), r.total/2) }

func (r room) refuses(memoryBytes int64) string {
	if r.free-memoryBytes >= r.kept() {
		return ""
	}
	return sizeText(r.free) + " of " + r.whose + " " + sizeText(r.total) + " are free, " +
		sizeText(r.kept()) + " stays untouched, " + sizeText(memoryBytes) + " is wanted"
}

// admission is what this machine tells of its memory at a moment.
type admission struct {
	rooms    []room
	pressure float64 // percent; 0 also when it is not known
	unknown  []string
}

// look reads it. A kernel that keeps no account of pressure is not one that fails
// to tell: there is nothing to be known.
func look(roots cgroup.Roots) admission {
	var a admission
	text, err := os.ReadFile(path.Join(roots.Proc, "meminfo"))
	if total, available, ok := memoryOf(string(text)); err == nil && ok {
		a.rooms = append(a.rooms, room{"this machine's", total, available})
	} else {
		a.unknown = append(a.unknown, "how much memory is free")
	}
	if text, err := os.ReadFile(path.Join(roots.Proc, "pressure", "memory")); err == nil {
		var ok bool
		if a.pressure, ok = pressureOf(string(text)); !ok {
			a.unknown = append(a.unknown, "the memory pressure")
		}
	}
	var around []cgroup.Ceiling
	host, err := cgroup.Detect(roots, 0)
	if err == nil {
		around, err = host.Ceilings()
	}
	if err != nil {
		a.unknown = append(a.unknown, "the limits of control groups ("+strings.ReplaceAll(err.Error(), "\n", "; ")+")")
	}
	for _, c := range around {
		a.rooms = append(a.rooms, room{"the control group " + c.Group + "'s", c.LimitBytes, c.FreeBytes})
	}
	return a
}

// refuses says why a sandbox of this size may not start now, "" = it may, and what
// was not known about it.
func (a admission) refuses(memoryBytes int64) (why string, unknown []string) {
	for _, r := range a.rooms {
		if why := r.refuses(memoryBytes); why != "" {
			return why, a.unknown
		}
	}
	if a.pressure >= mostPressure {
		return "memory pressure is " + strconv.FormatFloat(a.pressure, 'f', -1, 64) + " %", a.unknown
	}
	return "", a.unknown
}
