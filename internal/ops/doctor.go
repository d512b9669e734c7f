package ops

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"sbx/internal/config"
	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// DoctorResult is what the doctor has checked, of this tool first, then of each provider.
type DoctorResult struct {
	Checks  []Check
	Trouble error // what ended it before all were checked
}

// Doctor checks this tool, its configuration and its providers. It also runs while the
// configuration is broken. An error is a wrong use.
func Doctor(ctx context.Context, env *Env, watch Observer) (*DoctorResult, error) {
	r := &DoctorResult{Checks: env.checkFiles(ctx)}
	c, err := env.Config()
	switch {
	case err != nil && env.flagsAreWrong(ctx):
		return nil, err
	case err != nil:
		r.addChecks(brokenConfig(err)...)
	default:
		r.addChecks(env.checkConfig(ctx, c)...)
	}
	r.addChecks(env.checkPath()...)
	if c == nil {
		return r, nil
	}
	f, err := env.Fleet(ctx)
	switch {
	case fault.KindOf(err) == fault.KindUsage:
		return nil, err
	case err != nil:
		r.addChecks(ToolCheck("providers", sandbox.False, err.Error(), fault.HintOf(err)))
		return r, nil
	}
	progress := watch.Progress("checking")
	defer progress.Done()
	for _, check := range f.Checks(ctx) {
		check.Message = strings.TrimPrefix(check.Message, check.Provider+": ") // the provider has a column of its own
		r.addChecks(Check{ProviderCheck: check})
	}
	for _, q := range f.Quotas(ctx) {
		r.addChecks(quotaChecks(q)...)
	}
	slices.SortStableFunc(r.Checks, func(a, b Check) int { return cmp.Compare(a.Provider, b.Provider) })
	r.Trouble = context.Cause(ctx)
	return r, nil
}

func (r *DoctorResult) addChecks(checks ...Check) { r.Checks = append(r.Checks, checks...) }

// flagsAreWrong says that the configuration loads without the flags: then it is
// the command line that has to be corrected.
func (e *Env) flagsAreWrong(ctx context.Context) bool {
	in := e.Input()
	if len(in.Flags) == 0 {
		return false
	}
	in.Flags = nil
	_, err := config.Load(ctx, in)
	return err == nil
}

// quotaNear is the share of a limit from which it is called near.
const quotaNear = 0.8

// quotaChecks reports which limits of an account are near. A provider without known limits is
// no finding.
func quotaChecks(q fleet.ProviderQuota) []Check {
	row := func(verdict sandbox.Verdict, message, hint string) Check {
		r := ToolCheck("quota", verdict, message, hint)
		r.Provider = q.Provider
		return r
	}
	switch {
	case fault.KindOf(q.Err) == fault.KindUnsupported:
		return []Check{row(sandbox.Unknown, strings.TrimPrefix(q.Err.Error(), q.Provider+": "), fault.HintOf(q.Err)).AsNote()}
	case q.Err != nil:
		return []Check{row(sandbox.Unknown, strings.TrimPrefix(q.Err.Error(), q.Provider+": "), fault.HintOf(q.Err))}
	}
	var near []Check
	known := 0
	for _, one := range q.Quotas {
		if one.Used == nil || one.Limit == nil || *one.Limit <= 0 {
			continue
		}
		if known++; *one.Used >= quotaNear**one.Limit {
			near = append(near, row(sandbox.False, quotaText(one), "`sbx ls --provider "+q.Provider+" --sort age` shows what can be ended"))
		}
	}
	if len(near) == 0 && known > 0 {
		return []Check{row(sandbox.True, fmt.Sprintf("%d limits, none of them near", known), "")}
	}
	return near
}

func quotaText(q providers.Quota) string {
	where := ""
	if q.Scope != "" {
		where = " in " + q.Scope
	}
	return fmt.Sprintf("%s%s: %g of %g %s used", q.Name, where, *q.Used, *q.Limit, q.Unit)
}
