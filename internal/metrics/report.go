package metrics

// Report is the figures of tasks.
type Report struct {
	Build   Build
	Figures []ReportFigure
}

// ReportFigure is one of them. What is not known is absent.
type ReportFigure struct {
	ID, Unit string
	Value    *float64
	Samples  int
	Met      *bool // whether the target is met; nil = not known, or there is none
}

// Set names the figures.
func (r Report) Set() Set {
	var s Set
	s.addBuild(r.Build, []Label{{"layer", "report"}})
	for _, f := range r.Figures {
		mine := []Label{{"id", f.ID}, {"unit", f.Unit}}
		if f.Value != nil {
			s.Gauge("sbx_task_figure", "A figure of tasks, as `sbx report` shows it.", *f.Value, mine...)
		}
		s.Gauge("sbx_task_figure_samples", "How many samples the figure is from.", float64(f.Samples), mine...)
		if f.Met != nil {
			s.Gauge("sbx_task_figure_target_met", "1 = the target of the figure is met; absent = not known.", boolFigure(*f.Met), mine...)
		}
	}
	return s
}
