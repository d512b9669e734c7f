package views

// DashboardKeys are the keys of dashboard --once.
type DashboardKeys struct {
	// The figures of each profile that answered; the stuck ones are counted with those that were found by a look.
	Profiles  []StatsItem      `json:"profiles"`
	Sandboxes *DashboardGroups `json:"sandboxes"` // Every sandbox that is listed, by its group.
}

// DashboardGroups are the sandboxes by their verdict, each in one group.
type DashboardGroups struct {
	Stuck    []SandboxItem `json:"stuck"`    // Those that are stuck, by the rule of cleanup.
	AtRisk   []SandboxItem `json:"at_risk"`  // Those with a sign of trouble that does not make them stuck.
	Unjudged []SandboxItem `json:"unjudged"` // Those that a look could not judge, either.
	Working  []SandboxItem `json:"working"`  // All others that have not ended.
	Ended    []SandboxItem `json:"ended"`    // Those that have ended and that the provider still lists.
}
