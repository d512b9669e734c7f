package metrics

import "slices"

// Alert is a rule at one provider.
type Alert struct {
	Rule, Provider, Severity string
	Firing                   bool
}

// AddAlerts adds the alerts of which it is known whether they fire.
func (s *Set) AddAlerts(all []Alert, common ...Label) {
	for _, a := range all {
		s.Gauge("sbx_alert", "1 = the alert fires; absent = not known (docs/ALERTS.md).", boolFigure(a.Firing),
			append(slices.Clone(common), Label{"rule", a.Rule}, Label{"provider", a.Provider}, Label{"severity", a.Severity})...)
	}
}
