//go:build !unix

package local

import (
	"context"
	"errors"
	"os"

	"sbx/internal/providers"
	"sbx/internal/providers/local/wire"
)

func supported() bool { return false }

func (c *Client) supervise(context.Context, wire.Order, *os.File) (wire.Ready, error) {
	return wire.Ready{}, errors.ErrUnsupported
}

func (s *streams) openTerminal(providers.Command) error { return errors.ErrUnsupported }

func shutdown(conn *os.File) error { return conn.Close() }
