package views_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"

	"sbx/internal/fault"
	"sbx/internal/views"
)

func TestMissingSaysWhy(t *testing.T) {
	t.Parallel()
	unable := fault.New(fault.KindUnsupported, "a provider of type fake has no probe").At("prod", "")
	assert.Equal(t, "cannot be known: a provider of type fake has no probe", views.UnknownReason(unable))
	assert.Equal(t, "could not be read: 503", views.UnknownReason(fault.New(fault.KindUnavailable, "503").At("prod", "probe x")))
	assert.Equal(t, "could not be read: odd", views.UnknownReason(errors.New("odd")))
}
