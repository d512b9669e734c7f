package ops

import (
	"slices"

	"sbx/internal/fleet"
	"sbx/internal/providers"
)

// QuotaOf are the quotas of a profile; the zero value where it was not asked.
func QuotaOf(quotas []fleet.ProviderQuota, name string) fleet.ProviderQuota {
	if i := slices.IndexFunc(quotas, func(q fleet.ProviderQuota) bool { return q.Provider == name }); i >= 0 {
		return quotas[i]
	}
	return fleet.ProviderQuota{Provider: name}
}

// HighestUse is the share of the quota of a profile that is used most; nil = it is not known.
func HighestUse(quotas []fleet.ProviderQuota, profile string) *float64 {
	q := QuotaOf(quotas, profile)
	share, _, known := providers.HighestUse(q.Quotas)
	if q.Err != nil || !known {
		return nil
	}
	return &share
}

// HintMaxSandboxes names the setting that replaces a missing quota.
const HintMaxSandboxes = "set limits.max_sandboxes, or max_sandboxes in the profile: running sandboxes are then counted against it"

// CheckQuota is the name of the check of a quota.
const CheckQuota = "quota"
