package providertest

import (
	"sync"

	"sbx/internal/providers"
)

// Fakes finds the fake before which the provider of a check stands.
type Fakes[F any] struct{ all sync.Map }

// New is Config.New: open makes the fake of a check, and the provider before it.
func (s *Fakes[F]) New(open func(t T) (F, providers.Provider)) func(T) providers.Provider {
	return func(t T) providers.Provider {
		f, p := open(t)
		s.all.Store(p, f)
		if c, ok := p.(interface{ Close() }); ok {
			t.Cleanup(c.Close)
		}
		return p
	}
}

// Of is the fake of a provider.
func (s *Fakes[F]) Of(p providers.Provider) F {
	f, _ := s.all.Load(p)
	return f.(F) //nolint:forcetypeassert,errcheck // it holds nothing else
}

// Add is a function of Config that adds a sandbox to the fake and returns its id.
func (s *Fakes[F]) Add(add func(F) string) func(T, providers.Provider) string {
	return func(_ T, p providers.Provider) string { return add(s.Of(p)) }
}
