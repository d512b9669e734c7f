//go:build unix

package local

import (
	"bytes"
	"errors"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/providers/local/wire"
)

type orderPipe struct {
	bytes.Buffer

	closing error
}

func (p *orderPipe) Close() error { return p.closing }

// A sandbox that ends at once ends its supervisor before the order's pipe is
// closed: it was started all the same, and a second start would be one too many.
func TestGiveToASupervisorThatIsDoneAlready(t *testing.T) {
	t.Parallel()
	pipe := &orderPipe{closing: &os.PathError{Op: "close", Path: "|1", Err: os.ErrClosed}}
	require.NoError(t, give(pipe, wire.Order{Root: "/state/local"}))
	var got wire.Order
	require.NoError(t, wire.NewReader(pipe).Next(&got))
	assert.Equal(t, "/state/local", got.Root)

	broken := errors.New("broken")
	assert.ErrorIs(t, give(&orderPipe{closing: broken}, wire.Order{}), broken)
}
