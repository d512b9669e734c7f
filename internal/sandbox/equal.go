package sandbox

import (
	"maps"
	"slices"
	"time"
)

// Equal reports whether two records say the same, in every field. Who reads a fleet again and again keeps one of them.
func (s *Sandbox) Equal(o *Sandbox) bool {
	return s.texts() == o.texts() && s.times() == o.times() && s.ClockSkew == o.ClockSkew && s.IdleStop == o.IdleStop &&
		sameAmount(s.Limits.MemoryBytes, o.Limits.MemoryBytes) && sameAmount(s.Limits.CPU, o.Limits.CPU) &&
		sameAmount(s.Limits.DiskBytes, o.Limits.DiskBytes) && sameAmount(s.Limits.PIDs, o.Limits.PIDs) &&
		(s.Labels == nil) == (o.Labels == nil) && maps.Equal(s.Labels, o.Labels) &&
		(s.Command == nil) == (o.Command == nil) && slices.Equal(s.Command, o.Command) &&
		len(s.Troubles) == 0 && len(o.Troubles) == 0 &&
		s.Exit == nil && o.Exit == nil // one that has ended is soon gone: it is not worth a comparison
}

func (s *Sandbox) texts() [16]string {
	return [...]string{
		s.Provider, s.ProviderType, s.ID, s.Name, string(s.State), s.RawState, string(s.ActivityBasis), string(s.Activity),
		s.Template, s.Node, s.EndNote, s.AgentType, s.TaskID, s.Owner, string(s.Limits.Enforcement), s.Limits.Isolation,
	}
}

// times are compared with their locations, which are printed.
func (s *Sandbox) times() [10]time.Time {
	return [...]time.Time{
		s.CreatedAt, s.StartedAt, s.FirstSeenAt, s.LastActivityAt, s.ExpiresAt, s.EndingAt, s.EndsBy, s.EndingSeenAt, s.EndedAt, s.KeptUntil,
	}
}

func sameAmount[T comparable](a, b *T) bool {
	return a == b || a != nil && b != nil && *a == *b
}
