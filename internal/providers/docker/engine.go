package docker

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"sbx/internal/fault"
	"sbx/internal/httpx"
)

// The versions of the API that this package speaks. The newest one is that of the engine 29; the oldest, of
// the engine 19.03, has everything that is used here. Engines refuse a version that they do not know, in
// both directions, so that none fits all.
const (
	newestAPI = 56 // 1.56
	oldestAPI = 40 // 1.40
)

// engine is what answers at the address.
type engine struct {
	api    string // the version that is spoken: "1.41"
	podman bool
	libpod string   // of Podman: the version of its own API; "" = not said
	groups []string // of Podman: the control groups that its user has; nil = not asked, or not said
}

// Control groups, as Podman names them.
const (
	groupMemory = "memory"
	groupCPU    = "cpu"
	groupPIDs   = "pids"
)

// lacksGroup says that the engine has no such control group: then a limit of it does not hold, and figures of it are those
// of the whole machine. Only Podman says which it has; Docker's engine warns of what it lacks.
func (c *Client) lacksGroup(ctx context.Context, op, name string) (bool, error) {
	e, err := c.knownEngine(ctx, op)
	if err != nil || e.libpod == "" {
		return false, err
	}
	if e.groups == nil {
		var w wireLibpod
		if _, err := c.API.JSON(ctx, httpx.Request{Op: op, Path: "/v" + e.libpod + "/libpod/info"}, &w); err != nil && !httpx.AnsweredMissing(err) {
			return false, err
		}
		if e.groups = w.groups(); e.groups == nil {
			return false, nil
		}
		c.mu.Lock()
		c.engine.groups = e.groups
		c.mu.Unlock()
	}
	return !slices.Contains(e.groups, name), nil
}

// groups are the control groups; empty for none, nil where they are not said.
func (w wireLibpod) groups() []string {
	text := w.Host.CgroupControllers
	if len(text) == 0 {
		return nil
	}
	groups := []string{}
	if json.Unmarshal(text, &groups) != nil {
		return nil
	}
	if groups == nil { // null
		groups = []string{}
	}
	return groups
}

// knownEngine asks the engine once which version it speaks.
func (c *Client) knownEngine(ctx context.Context, op string) (engine, error) {
	c.mu.Lock()
	known := c.engine
	c.mu.Unlock()
	if known.api != "" {
		return known, nil
	}
	res, err := c.API.Do(ctx, httpx.Request{Op: op, Path: "/_ping", Fresh: true})
	if err != nil {
		return engine{}, c.awayFault(op, err)
	}
	offered := res.Header.Get("Api-Version")
	major, minor, ok := strings.Cut(offered, ".")
	number, err := strconv.Atoi(minor)
	switch {
	case !ok || major != "1" || err != nil:
		return engine{}, c.Fault(fault.KindUnavailable, op, "%q is no version of Docker's API: something else answers there", offered).
			WithHint("check host: requests go to %s", c.at.Host)
	case number < oldestAPI:
		return engine{}, c.Fault(
			fault.KindUnsupported, op, "the engine speaks version %s of the API; sbx needs 1.%d", offered, oldestAPI,
		).WithHint("update the engine to 19.03 or newer")
	}
	libpod := res.Header.Get("Libpod-Api-Version")
	known = engine{api: "1." + strconv.Itoa(min(number, newestAPI)), libpod: libpod, podman: strings.HasPrefix(res.Header.Get("Server"), "Libpod") || libpod != ""}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.engine = known
	return known, nil
}

// awayFault is the error of an engine that cannot be reached, with a hint for what a user can mend.
func (c *Client) awayFault(op string, err error) error {
	switch {
	case errors.Is(err, fs.ErrPermission):
		return c.Fault(
			fault.KindAuth, op, "the engine at %s refuses this user: %w", c.at.Host, err,
		).WithHint("your user needs the right to use the socket, for example by the group docker")
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return c.Fault(
			fault.KindUnavailable, op, "no engine listens at %s: %w", c.at.Host, err,
		).WithHint("start the engine, or name another: %s names this one", c.at.From)
	}
	return err
}

// refusesVersion says that the engine does not take the version of the API in the path of the request, so that it had
// no effect.
func refusesVersion(err error) bool {
	s := httpx.StatusOf(err)
	return s != nil && s.Status == http.StatusBadRequest && strings.HasPrefix(s.Message, "client version ")
}

// forgetEngine makes the next request ask which version the engine speaks.
func (c *Client) forgetEngine() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.engine = engine{}
}

// changesPolicies says that the engine changes the restart policy of a container, which Podman does since 5.1.
func (c *Client) changesPolicies() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	major, minor, _ := strings.Cut(c.engine.libpod, ".")
	minor, _, _ = strings.Cut(minor, ".")
	at, _ := strconv.Atoi(major) // what is no number is an old one
	behind, _ := strconv.Atoi(minor)
	return !c.engine.podman || at > 5 || at == 5 && behind >= 1
}

// isPodman says that Podman answers, as far as is known.
func (c *Client) isPodman() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.engine.podman
}
