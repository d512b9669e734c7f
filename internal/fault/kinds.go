package fault

// Kind is a kind of failure; its text is the value of "kind" in JSON.
type Kind string

// The closed list of kinds. Kinds and codes are only ever added.
const (
	KindNone            Kind = ""
	KindUnknown         Kind = "unknown"
	KindUsage           Kind = "usage"
	KindPartial         Kind = "partial"
	KindAuth            Kind = "auth"
	KindNotFound        Kind = "not_found"
	KindGone            Kind = "gone"
	KindUnavailable     Kind = "unavailable"
	KindUnverified      Kind = "unverified"
	KindUnsupported     Kind = "unsupported"
	KindFound           Kind = "found"
	KindRefused         Kind = "refused"
	KindLocked          Kind = "locked"
	KindTimeout         Kind = "timeout"
	KindLauncher        Kind = "launcher"
	KindNotExecutable   Kind = "not_executable"
	KindCommandNotFound Kind = "command_not_found"
	KindCanceled        Kind = "canceled"
	KindTerminated      Kind = "terminated"
)

// Row is one line of the exit-code table.
type Row struct {
	Code      int
	Kind      Kind
	Meaning   string // for a cron job
	Retryable bool   // the same call may succeed later
}

// Table is the exit-code table, by ascending code. `sbx help exit-codes`, the docs and every
// exit of the process use it.
func Table() []Row {
	return []Row{
		{0, KindNone, "done and verified, or nothing to do", false},
		{1, KindUnknown, "failed, unclassified", false},
		{2, KindUsage, "wrong flag, argument or configuration; nothing was called", false},
		{3, KindPartial, "some sandboxes or some providers failed, the rest succeeded", true},
		{4, KindAuth, "credentials missing, wrong or without the right", false},
		{5, KindNotFound, "no such sandbox", false},
		{6, KindGone, "it existed and has expired: recreate, do not retry", false},
		{7, KindUnavailable, "network, server error, throttling or an invalid answer: try later", true},
		{8, KindUnverified, "accepted, but not verified within --wait", true},
		{9, KindUnsupported, "this provider cannot do that", false},
		{10, KindFound, "a check found something wrong", false},
		{11, KindRefused, "a safety limit refused the run, or only a missing `owned` kept an unattended cleanup from something", false},
		{12, KindLocked, "another run holds the lock", true},
		{124, KindTimeout, "the limit set with --timeout was reached", true},
		{125, KindLauncher, "the program could not be started", true},
		{126, KindNotExecutable, "the program is not executable", false},
		{127, KindCommandNotFound, "the program was not found", false},
		{130, KindCanceled, "interrupted (SIGINT)", true},
		{143, KindTerminated, "interrupted (SIGTERM)", true},
	}
}

// Row is the table row of a kind; an unlisted kind counts as unknown.
func (k Kind) Row() Row {
	rows := Table()
	for _, r := range rows {
		if r.Kind == k {
			return r
		}
	}
	return rows[1]
}
