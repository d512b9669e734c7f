//go:build !unix

package local

import (
	"context"
	"errors"
	"os"

	"sbx/internal/providers"
	"sbx/internal/providers/local/wire"
)

func isSupported() bool { return false }

func (c *Client) startSupervisor(context.Context, wire.Order, *os.File) (wire.Ready, error) {
	return wire.Ready{}, errors.ErrUnsupported
}

func (s *execStreams) openTerminal(providers.Command) error { return errors.ErrUnsupported }

func shutdownConn(conn *os.File) error { return conn.Close() }
