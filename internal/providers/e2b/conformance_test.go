package e2b_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/providers/e2b"
	"sbx/internal/providers/e2b/e2btest"
	"sbx/internal/providers/providertest"
)

// open opens a profile on a fake, over loopback.
func open(t providertest.T, f *e2btest.Fake, kind providers.Type) providers.Provider {
	p, err := kind.Open(t.Context(), providers.Profile{Name: "prod", Type: kind.Name, Settings: e2btest.Settings(f.Listen())},
		providers.Deps{Now: time.Now, Net: httpx.Net{Agent: "sbx/test"}})
	require.NoError(t, err)
	return p
}

// subject tests one dialect against a fake of its own for each check.
func subject(kind providers.Type, o e2btest.Options) providertest.Config {
	var fakes sync.Map // providers.Provider -> *e2btest.Fake
	o.PageSize = 2
	return providertest.Config{
		New: func(t providertest.T) providers.Provider {
			f := e2btest.New(t, o)
			p := open(t, f, kind)
			fakes.Store(p, f)
			return p
		},
		Paused: func(_ providertest.T, p providers.Provider) string {
			f, _ := fakes.Load(p)
			return f.(*e2btest.Fake).Add(e2btest.Seed{Paused: true}) //nolint:forcetypeassert,errcheck // it holds nothing else
		},
		Many: 5,
		Settle: func(p providers.Provider) {
			if c, ok := p.(interface{ Close() }); ok {
				c.Close()
			}
		},
		Limit:   20 * time.Second,
		Secrets: []string{e2btest.Key},
	}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	providertest.Run(t, subject(e2b.Type(), e2btest.Options{}))
}

func TestNovitaConformance(t *testing.T) {
	t.Parallel()
	providertest.Run(t, subject(e2b.NovitaType(), e2btest.Options{Novita: true}))
}
