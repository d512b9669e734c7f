package documents

// dashboardDocument is the document of dashboard --once.
type dashboardDocument struct {
	// Name and version of this form.
	Schema string `json:"schema"`
	// The figures of each profile that answered; the stuck ones are counted with those that were found by a look.
	Profiles []statsRow `json:"profiles,omitempty"`
	// Every sandbox that is listed, by its group.
	Sandboxes *dashboardGroups `json:"sandboxes,omitempty"`

	outcome
}

// dashboardGroups are the sandboxes by their verdict, each in one group.
type dashboardGroups struct {
	// Those that are stuck, by the rule of cleanup.
	Stuck []sandboxRow `json:"stuck"`
	// Those with a sign of trouble that does not make them stuck.
	AtRisk []sandboxRow `json:"at_risk"`
	// Those that a look could not judge, either.
	Unjudged []sandboxRow `json:"unjudged"`
	// All others that have not ended.
	Working []sandboxRow `json:"working"`
	// Those that have ended and that the provider still lists.
	Ended []sandboxRow `json:"ended"`
}
