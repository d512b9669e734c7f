package look

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"time"

	"sbx/internal/check"
	"sbx/internal/config"
	"sbx/internal/fleet"
	"sbx/internal/ops"
	"sbx/internal/sandbox"
	"sbx/internal/snapshot"
	"sbx/internal/triage"
)

// recordFleet records what was read, and the conclusions. Where those of runbooks cannot be made, the
// snapshot is beside the error.
func (d *diagnosis) recordFleet(ctx context.Context, look fleetLook) (*snapshot.Snapshot, error) {
	s := &snapshot.Snapshot{Schema: snapshot.Schema, At: d.result.At.UTC(), Log: snapshot.NewLog(d.log)}
	if c := look.cleanup; c != nil {
		s.Cleanup = snapshot.NewCleanup(c.Profiles, c.Runs, len(c.Errors))
	}
	keeps, err := d.keptByRule(ctx)
	if err != nil {
		return nil, err
	}
	looked := int(countWhere(look.judgedAll(), func(j fleet.Judged) bool { return j.Facts != nil }))
	for _, p := range look.profiles {
		s.Profiles = append(s.Profiles, d.recordProfile(p, look.quotas, snapshot.SamplesEach(looked), keeps))
	}
	s.Settings = settingsOf(d.env, s)
	s.Concluded = d.concluded(s, look)
	if d.env.AddRunbooks != nil {
		err = d.env.AddRunbooks(ctx, s, d.result.Subjects)
	}
	return s, err
}

// kept is why a cleanup does not end a sandbox, whatever else its rule says.
type kept struct {
	protected string
	notOwned  bool
}

// keptByRule reads whom a profile owns, what is protected, and what tasks hold.
func (d *diagnosis) keptByRule(ctx context.Context) (func(sandbox.Sandbox) kept, error) {
	c, err := d.env.Config()
	if err != nil {
		return nil, err
	}
	protection := d.env.Protection(c, d.env.Leases(ctx))
	return func(s sandbox.Sandbox) kept {
		k := kept{protected: protection.ByRule(s)}
		if p, known := c.Find(s.Provider); known {
			k.notOwned = !p.Owned.Owns(s.Labels)
		}
		return k
	}, nil
}

func (d *diagnosis) recordProfile(p profileLook, quotas []fleet.ProviderQuota, samples int, keeps func(sandbox.Sandbox) kept) snapshot.Profile {
	var quota *fleet.ProviderQuota
	if i := slices.IndexFunc(quotas, func(q fleet.ProviderQuota) bool { return q.Provider == p.name }); i >= 0 {
		quota = &quotas[i]
	}
	recorded := snapshot.NewProfile(p.read, p.stats != nil, quota, d.redact)
	recorded.Failed, recorded.Judged = snapshot.NewFailure(p.late, d.redact), p.listed
	for i, row := range p.rows {
		var j fleet.Judged
		if p.listed {
			j = p.judged[i]
		}
		box := snapshot.NewSandbox(row, j, samples, d.redact)
		k := keeps(row)
		box.Protected, box.NotOwned = d.redact(k.protected), k.notOwned
		recorded.Sandboxes = append(recorded.Sandboxes, box)
	}
	return recorded
}

// settingsOf are the thresholds in force for each kind of sandbox of a snapshot.
func settingsOf(e *ops.Env, s *snapshot.Snapshot) []snapshot.Setting {
	all := []snapshot.Setting{}
	for i := range s.Profiles {
		p := &s.Profiles[i]
		types := []string{""}
		for _, b := range p.Sandboxes {
			if !slices.Contains(types, b.AgentType) {
				types = append(types, b.AgentType)
			}
		}
		general := settingOf(e, p, "")
		all = append(all, general)
		slices.Sort(types)
		for _, agent := range types[1:] {
			if own := settingOf(e, p, agent); !maps.Equal(own.Thresholds, general.Thresholds) {
				all = append(all, own)
			}
		}
	}
	return all
}

func settingOf(e *ops.Env, p *snapshot.Profile, agent string) snapshot.Setting {
	limits := e.Thresholds(sandbox.Sandbox{Provider: p.Name, ProviderType: p.Type, AgentType: agent})
	return snapshot.Setting{Provider: p.Name, AgentType: agent, AgeOnly: limits.AgeOnly, Thresholds: thresholdTexts(limits)}
}

// thresholdTexts are thresholds by their keys in the configuration.
func thresholdTexts(t triage.Thresholds) map[string]string {
	texts := map[string]string{}
	for _, s := range config.DefaultSettings() {
		if s.Amount == nil {
			continue
		}
		amount := s.Amount(t)
		switch s.Unit {
		case config.UnitSeconds:
			texts[s.Key] = sandbox.FormatDuration(time.Duration(amount * float64(time.Second)))
		case config.UnitRatio:
			texts[s.Key] = strconv.FormatFloat(amount*100, 'g', 6, 64) + "%"
		case config.UnitCount:
			texts[s.Key] = strconv.FormatFloat(amount, 'f', -1, 64)
		}
	}
	return texts
}

// concluded are the conclusions as a snapshot records them.
func (d *diagnosis) concluded(s *snapshot.Snapshot, look fleetLook) snapshot.Concluded {
	r := d.result
	c := snapshot.Concluded{
		Verdict: r.Verdict(), Listed: r.Listed, Stuck: marked(r.Stuck), Suspected: marked(r.Suspected), Unjudged: RefTexts(r.Unjudged),
		Flags: []snapshot.Answer{}, Causes: []snapshot.Cause{}, Alerts: heldAlerts(r.Subjects), Checks: d.recordedChecks(look), Plan: recordedPlan(d.env, s),
	}
	for _, f := range r.Flags {
		if f.Verdict != sandbox.False {
			c.Flags = append(c.Flags, snapshot.Answer{ID: f.ID, Verdict: f.Verdict})
		}
	}
	for _, f := range r.Causes {
		c.Causes = append(c.Causes, snapshot.Cause{ID: f.ID, Confidence: f.Confidence})
	}
	return c
}

func marked(groups []ops.CauseGroup) []snapshot.Marked {
	all := []snapshot.Marked{}
	for _, g := range groups {
		for _, ref := range g.Refs {
			all = append(all, snapshot.Marked{Ref: ref.String(), Cause: g.Cause})
		}
	}
	return all
}

// RefTexts are references as texts, PROFILE/ID.
func RefTexts(refs []sandbox.Ref) []string {
	all := []string{}
	for _, ref := range refs {
		all = append(all, ref.String())
	}
	return all
}

// heldAlerts are the alerts whose condition holds or is not known.
func heldAlerts(subjects []check.Subject) []snapshot.Alert {
	all := []snapshot.Alert{}
	for _, rule := range check.Alerts() {
		for i := range subjects {
			if v := rule.Judge(&subjects[i]); v != sandbox.False {
				all = append(all, snapshot.Alert{Rule: rule.ID, Provider: subjects[i].Provider, Verdict: v})
			}
		}
	}
	return all
}

// recordedChecks are the targets of verify by what was read.
func (d *diagnosis) recordedChecks(look fleetLook) []snapshot.Answer {
	stats, judged := look.statsAll(), look.judgedAll()
	subjects := ops.PlainSubjects(verifySubjects(d.env, stats, judged, look.quotas))
	cleanup := TargetCheck{Figure: targetFigure(check.Target("R127"), &check.Subject{}), Outcome: sandbox.Unknown}
	if look.cleanup != nil {
		cleanup = checkCleanupStatus(d.env, look.cleanup)
	}
	var all []snapshot.Answer
	for _, c := range []TargetCheck{checkActive(d.env, subjects), checkAges(d.env, stats, judged), cleanup, checkTimeouts(d.env, subjects, stats), checkQuotas(d.env, subjects, look.quotas)} {
		all = append(all, snapshot.Answer{ID: c.ID, Verdict: c.Outcome})
	}
	return all
}
