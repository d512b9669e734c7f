package providers_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/testkit/fake"
)

func TestAbilitiesAreFoundByWhatAProviderCanDo(t *testing.T) {
	t.Parallel()
	able := fake.New(fake.Options{Name: "able"})
	for _, a := range providers.Abilities() {
		assert.True(t, a.Has(able), a.Name)
		assert.False(t, a.Has(able.Bare()), a.Name)
		assert.True(t, a.Has(able.Only(a.Name)), a.Name)
	}
	_, reads := providers.As[providers.LogReader](able.Only("usage"))
	assert.False(t, reads)
}

func TestUnsupportedNamesThoseThatCan(t *testing.T) {
	t.Parallel()
	able := fake.New(fake.Options{Name: "able"})
	bare := fake.New(fake.Options{Name: "bare", Type: "other"}).Bare()
	err := providers.Unsupported(bare, "logs", []providers.Provider{bare, able})
	assert.Equal(t, fault.KindUnsupported, fault.KindOf(err))
	assert.Equal(t, "bare: a provider of type other has no logs", err.Error())
	assert.Equal(t, "these configured providers have it: able", fault.HintOf(err))

	err = providers.Unsupported(bare, "logs", []providers.Provider{bare})
	assert.Equal(t, "no configured provider has it", fault.HintOf(err))
	assert.Empty(t, fault.HintOf(providers.Unsupported(bare, "no such ability", nil)))
}
