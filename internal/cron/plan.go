package cron

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"al.essio.dev/pkg/shellescape"
)

const (
	flagLock     = "lock-timeout"
	flagPing     = "ping"
	flagTextfile = "textfile"
)

// Placeholder in an address or a path is replaced by the name of the layer.
const Placeholder = "{layer}"

// Plan is what the lines of one host have in common.
type Plan struct {
	Binary     string   // absolute
	Config     string   // absolute, for --config; "" = the user's file is found
	Providers  []string // the profiles; none = those that the configuration selects
	Production []string // of the profiles those for which the lines say --production
	// Withheld are production profiles that nobody has asked for: their lines are comments.
	Withheld []string
	// MaxDelete and MaxFraction (percent) are the guards of the runs; 0 = they are not known.
	MaxDelete, MaxFraction int
	// Measured are those of the profiles of which it is known how much of a quota they
	// use: layer usage is about them. MayEmergency are those of them that have an
	// emergency cleanup of their own, and Emergency switches it on.
	Measured     []string
	MayEmergency []string
	Emergency    bool
	Env          []string // NAME=value, none of them secret
	EnvFile      string   // absolute; holds what Needs names
	Needs        []string // variables that the configuration reads and a cron line has not
	StateDir     string   // absolute
	Host         string
	User         string // name or number, for units of the system
	// HostProcesses is the type of one of the profiles whose sandboxes are processes of
	// this machine; "" = none is.
	HostProcesses string

	WithoutOwner []string // of the profiles: only what has the label OwnerLabel is ended
	OwnerLabel   string
	Unlabelled   []string // of the undecided ones those whose provider keeps no labels
	Unrecorded   []string // of the profiles: what is there is compared with the records of sbx alone
	LockTimeout  string
	Ping         string // may hold Placeholder
	Textfile     string // absolute, may hold Placeholder
	CheckOnly    bool   // reconcile only looks
	Only         []Layer
}

// Entry is one layer of a plan.
type Entry struct {
	Layer    Layer
	Say      string   // what it does, in one line
	Schedule string   // of a crontab
	Calendar string   // of a timer
	Argv     []string // with the binary first
	Env      []string // NAME=value
	Unit     string   // the name of the service
	job      job
}

// guardComment says when the lines refuse to act, and what allows more.
func (p Plan) guardComment() string {
	if p.MaxDelete == 0 {
		return ""
	}
	return fmt.Sprintf("# A run that would end more than %d sandboxes (--max-delete), or more than %d%%\n"+
		"# of a profile's (--max-fraction), is refused as a whole and ends none:\n"+
		"# `sbx cron check` says so. To allow more, write --max-delete N into a line, or\n"+
		"# set limits.max_delete.\n", p.MaxDelete, p.MaxFraction)
}

// withheldRemark says why lines are comments.
func (p Plan) withheldRemark() []string {
	if len(p.withheldEntries()) == 0 {
		return nil
	}
	return []string{
		"No line acts in " + strings.Join(p.Withheld, ", ") + ": that is production, and --production was not asked for. To have it written:",
		"  " + p.Binary + " cron print" + repeatedFlag("--production", p.Withheld),
	}
}

// Remarks are what the operator has to know about the lines, one line of text each.
func (p Plan) Remarks() []string {
	lines := p.withheldRemark()
	if out := p.unmeasuredProfiles(); len(out) > 0 && p.wantsJob(job{layer: Usage}) {
		lines = append(lines,
			"Layer usage skips "+strings.Join(out, ", ")+": its quota use is unknown. Set",
			"limits.max_sandboxes, or max_sandboxes in the profile, and print the lines again.")
	}
	if len(p.Unrecorded) > 0 && p.wantsJob(job{layer: Reconcile}) {
		lines = append(lines,
			"Layer reconcile compares "+strings.Join(p.Unrecorded, ", ")+" with sbx's own records. To record sandboxes",
			"that others created there:",
			"  "+p.Binary+" reconcile"+ProviderFlags(p.Unrecorded)+" --adopt --fix")
	}
	if len(p.WithoutOwner) == 0 {
		return lines
	}
	lines = append(lines,
		"Of "+strings.Join(p.WithoutOwner, ", ")+" they terminate only sandboxes with the label "+p.OwnerLabel+": sbx does not know who owns the others.",
		"While a rule selects one of the others, they exit 11.",
		"To own all of them, or those with a label of yours:",
		"  "+p.Binary+" config own"+ProviderFlags(p.WithoutOwner)+" --all")
	if labelled := withoutWords(p.WithoutOwner, p.Unlabelled); len(labelled) > 0 {
		lines = append(lines, "  "+p.Binary+" config own"+ProviderFlags(labelled)+" --label KEY=VALUE")
	}
	return lines
}

// ProviderFlags chooses profiles on a command line: " --provider a --provider b".
func ProviderFlags(profiles []string) string { return repeatedFlag("--provider", profiles) }

func repeatedFlag(flag string, values []string) string {
	return " " + flag + " " + strings.Join(values, " "+flag+" ")
}

// withoutWords gives the words that are not among others.
func withoutWords(words, others []string) []string {
	return slices.DeleteFunc(slices.Clone(words), func(w string) bool { return slices.Contains(others, w) })
}

// unmeasuredProfiles are the profiles that layer usage cannot be about.
func (p Plan) unmeasuredProfiles() []string { return withoutWords(p.Providers, p.Measured) }

func (p Plan) remarkComments() string {
	var b strings.Builder
	for _, line := range p.Remarks() {
		b.WriteString("# " + commentLines(line) + "\n")
	}
	return b.String()
}

// Command is what a shell runs for an entry, whatever else its environment holds. A
// file of variables that is missing keeps nothing from running: sbx itself says
// which key it has not, and cleans the rest.
func (p Plan) Command(e Entry) string { return p.shellCommand(e, shellescape.Quote) }

func (p Plan) shellCommand(e Entry, quote func(string) string) string {
	words := make([]string, 0, len(e.Env)+len(e.Argv))
	for _, pair := range e.Env {
		words = append(words, shellAssignment(pair, quote))
	}
	for _, w := range e.Argv {
		words = append(words, quote(w))
	}
	line := strings.Join(words, " ")
	if len(p.Needs) > 0 {
		file := quote(p.EnvFile)
		line = "set -a; test ! -r " + file + " || . " + file + "; set +a; " + line
	}
	return line
}

// Entries are the lines of a plan, each with its words and its times. Layer usage has
// none where nothing can be measured.
func (p Plan) Entries() []Entry {
	list := p.entriesOf(func(j job) []string { return withoutWords(p.profilesOf(j), p.withheldFrom(j)) })
	if p.Emergency {
		list = append(list, p.emergencyEntries()...)
	}
	return list
}

// withheldEntries are the lines of the profiles that nobody has asked for, which are shown and not
// switched on.
func (p Plan) withheldEntries() []Entry {
	if len(p.Withheld) == 0 {
		return nil
	}
	return p.entriesOf(p.withheldFrom)
}

// entriesOf are the lines of the layers over these profiles of each; a plan of no profile is about those
// that its configuration selects.
func (p Plan) entriesOf(profiles func(job) []string) []Entry {
	var list []Entry
	for _, j := range layerJobs() {
		if names := profiles(j); p.wantsJob(j) && (len(names) > 0 || len(p.Providers) == 0) {
			list = append(list, p.entryOf(j, names))
		}
	}
	return list
}

// withheldFrom lists those of the profiles of a job in which it must not act unasked.
func (p Plan) withheldFrom(j job) []string {
	if !p.acts(j) {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(p.profilesOf(j)), func(name string) bool { return !slices.Contains(p.Withheld, name) })
}

// acts reports whether the line of a job changes anything.
func (p Plan) acts(j job) bool { return !p.CheckOnly || j.check == nil }

// offeredEntries are lines that are shown and not switched on.
func (p Plan) offeredEntries() []Entry {
	if p.Emergency {
		return nil
	}
	return p.emergencyEntries()
}

func (p Plan) emergencyEntries() []Entry {
	j := emergencyJob()
	names := withoutWords(p.profilesOf(j), p.Withheld)
	if !p.wantsJob(j) || len(names) == 0 {
		return nil
	}
	return []Entry{p.entryOf(j, names)}
}

func (p Plan) wantsJob(j job) bool { return len(p.Only) == 0 || slices.Contains(p.Only, j.layer) }

func (p Plan) entryOf(j job, profiles []string) Entry {
	return Entry{
		Layer: j.layer, Say: j.say, Schedule: j.crontabSchedule(p.Host), Calendar: j.timerCalendar(),
		Argv: p.argvOf(j, profiles), Env: slices.Clone(p.Env), Unit: "sbx-" + j.name + ".service", job: j,
	}
}

func (p Plan) profilesOf(j job) []string {
	switch {
	case j.name == emergencyJob().name:
		return p.MayEmergency
	case j.layer == Usage && len(p.Providers) > 0:
		return p.Measured
	}
	return p.Providers
}

// argvOf is the command of a line. It is quiet: what cron mails is worth reading.
func (p Plan) argvOf(j job, profiles []string) []string {
	acts := p.acts(j)
	argv := []string{p.Binary}
	if acts {
		argv = append(argv, j.args...)
	} else {
		argv = append(argv, j.check...)
	}
	add := func(flag, value string) {
		if value != "" {
			argv = append(argv, "--"+flag, value)
		}
	}
	add("config", p.Config)
	own := j.name == emergencyJob().name // which takes no selection: each profile is named twice
	for _, name := range profiles {
		add("provider", name)
	}
	for _, name := range profiles {
		if acts && (own || slices.Contains(p.Production, name) || slices.Contains(p.Withheld, name)) {
			add("production", name)
		}
	}
	for _, f := range []struct{ flag, value string }{{flagLock, p.LockTimeout}, {flagPing, p.Ping}, {flagTextfile, p.Textfile}} {
		if slices.Contains(j.takes, f.flag) {
			add(f.flag, strings.ReplaceAll(f.value, Placeholder, j.name))
		}
	}
	return append(argv, "--quiet")
}

func (p Plan) writableFolders() []string {
	list := []string{p.StateDir}
	if p.Textfile != "" {
		list = append(list, filepath.Dir(p.Textfile))
	}
	return slices.Compact(list)
}

// Check refuses what no line can hold.
func (p Plan) Check() error {
	words := slices.Concat([]string{p.EnvFile, p.StateDir, p.Host, p.User}, p.Env)
	all := slices.Concat(p.Entries(), p.withheldEntries())
	for _, e := range all {
		words = append(append(words, e.Argv...), e.Env...)
	}
	for _, w := range words {
		if err := CheckWord(w); err != nil {
			return err
		}
	}
	for _, e := range all {
		if line := p.crontabLine(e); len(line) > mostLine {
			return fmt.Errorf("the line of layer %s has %d characters, and the limit of cron is %d", e.Layer, len(line), mostLine)
		}
	}
	return nil
}
