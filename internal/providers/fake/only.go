package fake

import "sbx/internal/providers"

// Bare is the fake without any ability.
func (p *Provider) Bare() providers.Provider {
	return struct{ providers.Provider }{p}
}

// Only is the fake with one ability by its name in providers.Abilities; with an unknown name it has
// none.
func (p *Provider) Only(ability string) providers.Provider { //nolint:funlen // one case an ability
	bare := p.Bare()
	switch ability {
	case "logs":
		return struct {
			providers.Provider
			providers.LogReader
		}{bare, p}
	case "usage":
		return struct {
			providers.Provider
			providers.UsageReader
		}{bare, p}
	case "history":
		return struct {
			providers.Provider
			providers.UsageHistoryReader
		}{bare, p}
	case "processes":
		return struct {
			providers.Provider
			providers.ProcessLister
		}{bare, p}
	case "stats":
		return struct {
			providers.Provider
			providers.StatsReader
		}{bare, p}
	case "create":
		return struct {
			providers.Provider
			providers.Launcher
		}{bare, p}
	case "admit":
		return struct {
			providers.Provider
			providers.Admitter
		}{bare, p}
	case "exec":
		return struct {
			providers.Provider
			providers.Commander
		}{bare, p}
	case "probe":
		return struct {
			providers.Provider
			providers.Prober
		}{bare, p}
	case "events":
		return struct {
			providers.Provider
			providers.EventReader
		}{bare, p}
	case "cleanup":
		return struct {
			providers.Provider
			providers.ProviderCleaner
		}{bare, p}
	case "sweep":
		return struct {
			providers.Provider
			providers.Sweeper
		}{bare, p}
	case "exit":
		return struct {
			providers.Provider
			providers.ExitReader
		}{bare, p}
	case "activity":
		return struct {
			providers.Provider
			providers.ActivityReader
		}{bare, p}
	case "quota":
		return struct {
			providers.Provider
			providers.QuotaReader
		}{bare, p}
	case "records":
		return struct {
			providers.Provider
			providers.Recorder
		}{bare, p}
	case "verify":
		return struct {
			providers.Provider
			providers.Verifier
		}{bare, p}
	case "doctor":
		return struct {
			providers.Provider
			providers.Checker
		}{bare, p}
	}
	return bare
}
