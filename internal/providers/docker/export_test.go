package docker

import (
	"context"
	"net"
)

// FindEndpoint exports the address of requests to the engine of these settings, and how it is reached.
func FindEndpoint(settings map[string]string, lookup func(string) (string, bool)) (base string, dial func(context.Context) (net.Conn, error), err error) {
	e, err := findEndpoint(settings, lookup, nil)
	if err != nil {
		return "", nil, err
	}
	return e.base(), e.Dial, nil
}
