package e2b

import (
	"errors"
	"net/http"
	"strings"
	"sync/atomic"

	"sbx/internal/httpx"
)

// routeMissing says that the API lacks a route: some clones lack a few.
func routeMissing(err error) bool {
	if errors.Is(err, errNoRoute) {
		return true
	}
	switch httpx.Status(err) {
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotImplemented:
		return true
	}
	return false
}

// errNoRoute is the error of a request that was not sent, since the API lacks its route.
var errNoRoute = errors.New("the API has no such route")

// route remembers whether the API has a route, so that a look at ten thousand sandboxes does not
// find out ten thousand times that it has not.
type route struct {
	works   atomic.Bool
	refused atomic.Int32
}

// routeMisses is after how many sandboxes without one answer a route counts as missing.
const routeMisses = 3

// missing says that no request needs to be sent. A route that has answered once is never missing.
func (r *route) missing() bool { return !r.works.Load() && r.refused.Load() >= routeMisses }

// note records the answer about one sandbox. A 404 that names the sandbox is about that alone.
func (r *route) note(id string, err error) {
	switch status := httpx.StatusOf(err); {
	case err == nil:
		r.works.Store(true)
	case status == nil || !routeMissing(err), status.Status == http.StatusNotFound && strings.Contains(status.Message, id):
	default:
		r.refused.Add(1)
	}
}
