package documents

// logLine is one line of output.
type logLine struct {
	// When it was written; null where the provider does not say.
	At *moment `json:"at"`
	// stdout or stderr; empty where the provider does not say.
	Stream string `json:"stream"`
	// The text.
	Line string `json:"line"`
	// The known pattern that the line shows; empty for none.
	Pattern string `json:"pattern"`
}

// logsDocument is the document of logs.
type logsDocument struct {
	listOf[logLine]

	// How many lines are no longer kept; null where that is not known.
	MissingLines *int `json:"missing_lines,omitempty"`
	// How many bytes are no longer kept; null where that is not known.
	MissingBytes *int `json:"missing_bytes,omitempty"`
}

// created is a new sandbox.
type created struct {
	// PROFILE/ID.
	Ref string `json:"ref"`
}
