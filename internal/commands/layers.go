package commands

import (
	"sbx/internal/cron"
	"sbx/internal/reconcile"
)

// layer is that of a run of reconcile that looks or acts.
func (o *reconcileOptions) layer(r reconcile.Rules) (layer, shortfall string) {
	rule := cron.Rule{Reconcile: true}
	for _, f := range []struct {
		flag string
		set  bool
	}{
		{"--adopt", r.Adopt},
		{"--observations", r.Observations > reconcile.DefaultObservations},
		{"--grace", r.Grace > reconcile.DefaultGrace},
		{"--create-grace", r.CreateGrace > reconcile.DefaultCreateGrace},
		{"--max-records-age", r.RecordsAge < reconcile.DefaultRecordsAge},
	} {
		if f.set {
			rule.Narrowing = append(rule.Narrowing, f.flag)
		}
	}
	l, shortfall := rule.Layer()
	return string(l), shortfall
}
