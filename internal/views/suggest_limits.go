package views

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"sbx/internal/fault"
	"sbx/internal/ops/look"
	"sbx/internal/output"
)

// SuggestedLimitsItem are limits that fit what was seen of a profile.
type SuggestedLimitsItem struct {
	Provider       string     `json:"provider" table:""`                  // The profile.
	Active         *int       `json:"active" table:""`                    // For thresholds.active: the maximum times 1.5, rounded up, at least the default; null with less than a day of samples.
	ActiveNormal   *int       `json:"active_normal" table:""`             // For thresholds.active_normal: above the maximum, at least the default.
	EscalateActive *int       `json:"escalate_active" table:",wide"`      // For thresholds.escalate.active: 2.5 times active.
	MaxSandboxes   *int       `json:"max_sandboxes" table:""`             // For max_sandboxes; null where a quota is known or configured.
	SeenMax        *int64     `json:"seen_max" table:""`                  // The most that were active in a stored sample of the last week.
	SeenMaxAt      *time.Time `json:"seen_max_at" table:""`               // When that was.
	Samples        int        `json:"samples" table:""`                   // How many samples there are.
	FirstSampleAt  *time.Time `json:"first_sample_at" table:"SINCE,wide"` // The oldest of them.
	LastSampleAt   *time.Time `json:"last_sample_at" table:"UNTIL,wide"`  // The newest.
}

// SuggestedLimitsColumns are the columns of a SuggestedLimitsItem.
func SuggestedLimitsColumns() []output.Column[look.SuggestedLimits] {
	return output.Columns(suggestedLimitsItem)
}

func suggestedLimitsItem(s look.SuggestedLimits) SuggestedLimitsItem {
	item := SuggestedLimitsItem{
		Provider: s.Profile, Samples: s.Samples, SeenMaxAt: output.Time(s.MostAt), FirstSampleAt: output.Time(s.First), LastSampleAt: output.Time(s.Last),
		Active: knownLimit(s.Active), ActiveNormal: knownLimit(s.Normal), EscalateActive: knownLimit(s.Escalate), MaxSandboxes: knownLimit(s.MaxSandboxes),
	}
	if s.Samples > 0 {
		item.SeenMax = &s.Most
	}
	return item
}

func knownLimit(n int) *int {
	if n == 0 {
		return nil
	}
	return &n
}

// ShowSuggestedLimits prints the block of the configuration, and in other formats the figures.
func ShowSuggestedLimits(p *output.Printer, schema string, all []look.SuggestedLimits) error {
	if p.Format.Name() == output.Table && len(p.Columns) == 0 {
		return showLimitsBlock(p.Stdout(), all)
	}
	list, err := output.NewList(p, output.ListSpec[look.SuggestedLimits]{Schema: schema, Columns: SuggestedLimitsColumns()})
	if err != nil {
		return err
	}
	for _, s := range all {
		list.AddResult(s, s.Err)
	}
	return list.Close()
}

func showLimitsBlock(w io.Writer, all []look.SuggestedLimits) error {
	if _, err := io.WriteString(w, limitsBlock(all)); err != nil {
		return err
	}
	var errs []error
	for _, s := range all {
		if s.Err != nil {
			errs = append(errs, s.Err)
		}
	}
	if len(errs) > 0 && len(errs) < len(all) {
		return &fault.Error{Kind: fault.KindPartial, Err: errors.Join(errs...)}
	}
	return errors.Join(errs...)
}

// limitsBlock is YAML to paste; a profile without limits has no entry.
func limitsBlock(all []look.SuggestedLimits) string {
	var b strings.Builder
	for _, s := range all {
		if s.Err != nil {
			continue
		}
		if b.Len() == 0 {
			b.WriteString("providers:\n")
		}
		fmt.Fprintf(
			&b, "  %s:\n    # at most %d active, at %s; %d samples from %s to %s\n", s.Profile, s.Most, stampText(s.MostAt), s.Samples, stampText(s.First),
			stampText(s.Last),
		)
		fmt.Fprintf(
			&b,
			"    thresholds:\n      active: %d # 1.5 times the maximum, or the default\n      active_normal: %d # above the maximum, or the default\n      escalate: {active: %d} # 2.5 times active\n",
			s.Active, s.Normal, s.Escalate,
		)
		if s.MaxSandboxes > 0 {
			fmt.Fprintf(&b, "    max_sandboxes: %d # no quota is known: running ones are counted against it, and creates beyond it are refused\n", s.MaxSandboxes)
		}
	}
	return b.String()
}

func stampText(t time.Time) string { return t.UTC().Format("2006-01-02T15:04Z") }
