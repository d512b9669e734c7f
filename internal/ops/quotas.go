package ops

import (
	"slices"

	"sbx/internal/fleet"
	"sbx/internal/providers"
	"sbx/internal/triage"
)

// QuotaOf are the quotas of a profile; the zero value where it was not asked.
func QuotaOf(quotas []fleet.ProviderQuota, name string) fleet.ProviderQuota {
	if i := slices.IndexFunc(quotas, func(q fleet.ProviderQuota) bool { return q.Provider == name }); i >= 0 {
		return quotas[i]
	}
	return fleet.ProviderQuota{Provider: name}
}

// NoteQuota sets the quota of a profile that is used most. Where it is not known, figures keep theirs.
func NoteQuota(figures *triage.FleetSignals, quotas []fleet.ProviderQuota, profile string) {
	q := QuotaOf(quotas, profile)
	if share, fullest, known := providers.HighestUse(q.Quotas); known && q.Err == nil {
		if figures.QuotaUsed = &share; fullest.Limit == nil { // nothing is used of it
			return
		}
		figures.Quota = &triage.QuotaUse{Used: *fullest.Used, Limit: *fullest.Limit, Unit: fullest.Unit}
	}
}

// HintMaxSandboxes names the setting that replaces a missing quota.
const HintMaxSandboxes = "set limits.max_sandboxes, or max_sandboxes in the profile: running sandboxes are then counted against it"

// CheckQuota is the name of the check of a quota.
const CheckQuota = "quota"
