package ops

import (
	"fmt"
	"strings"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

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
