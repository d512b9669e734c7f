package commands

import (
	"context"
	"fmt"
	"slices"

	"sbx/internal/cleanup"
	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/ops"
	"sbx/internal/output"
)

// pressed gives the profiles of which more than --if-usage-above of a quota is used,
// and the shares of the others: those have nothing to do. One that cannot tell is no
// reason to end anything, and an error beside the others.
func (r *cleanupRun) pressed(ctx context.Context, p *output.Printer) (over []string, left []cleanup.Share, err error) {
	quotas := r.fleet.Quotas(ctx)
	silent := 0
	for _, name := range r.fleet.Names() {
		q := quotaOf(quotas, name)
		used, what := highest(q)
		switch {
		case q.Err != nil && fault.KindOf(q.Err) != fault.KindUnsupported:
			left = append(left, cleanup.Share{Profile: name, Err: q.Err})
		case !q.Known():
			silent++
			left = append(left, cleanup.Share{Profile: name, Err: fault.New(fault.KindUnsupported, "it does not tell what it uses of what it may, and max_sandboxes is not set").
				At(name, "quota").WithHint("%s", ops.HintMaxSandboxes)})
		case used > float64(r.usageAbove)/100:
			p.Note(fmt.Sprintf("%s uses %.0f%% of its %s", name, used*100, what))
			over = append(over, name)
		default:
			p.Note(fmt.Sprintf("%s uses %.0f%% of its %s: nothing to do", name, used*100, what))
			left = append(left, cleanup.Share{Profile: name, Calm: true})
		}
	}
	if silent > 0 && silent == len(r.fleet.Names()) {
		return nil, nil, fault.New(fault.KindUnsupported, "no selected provider tells what it uses of what it may").WithHint("%s; `%s providers` shows which providers tell a quota", ops.HintMaxSandboxes, r.d.Process.Name())
	}
	return over, left, nil
}

// narrowToPressed leaves in the fleet what is under pressure, and gives the others; a
// fleet that is nil has nothing to do.
func (r *cleanupRun) narrowToPressed(ctx context.Context, p *output.Printer) (left []cleanup.Share, err error) {
	if r.usageAbove == 0 {
		return nil, nil
	}
	over, left, err := r.pressed(ctx, p)
	if err != nil {
		return nil, err
	}
	if len(over) == 0 {
		r.fleet = nil
		return left, nil
	}
	r.fleet, err = r.fleet.Narrow(over)
	return left, err
}

// quotaOf is what was told of a profile.
func quotaOf(quotas []fleet.ProviderQuota, name string) fleet.ProviderQuota {
	if i := slices.IndexFunc(quotas, func(q fleet.ProviderQuota) bool { return q.Provider == name }); i >= 0 {
		return quotas[i]
	}
	return fleet.ProviderQuota{Provider: name}
}

// highest is the largest used share of any of a profile's limits.
func highest(q fleet.ProviderQuota) (used float64, what string) {
	for _, one := range q.Quotas {
		if one.Used == nil || one.Limit == nil || *one.Limit <= 0 {
			continue
		}
		if share := *one.Used / *one.Limit; what == "" || share > used {
			used, what = share, one.Name
		}
	}
	return used, what
}
