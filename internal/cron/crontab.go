package cron

import (
	"fmt"
	"strings"
	"time"

	"al.essio.dev/pkg/shellescape"

	"sbx/internal/sandbox"
)

// mostLine is how long a line may be, in bytes: Vixie cron and its children cut
// off at 1000 without a word.
const mostLine = 990

// crontabSchedule is when a layer runs, in the five fields of a crontab: from its offset
// on, every period.
func (j job) crontabSchedule(host string) string {
	first := j.firstMinute(host)
	if j.every >= time.Hour {
		return fmt.Sprintf("%d * * * *", first)
	}
	return fmt.Sprintf("%d-59/%d * * * *", first, int(j.every/time.Minute))
}

func (p Plan) crontabLine(e Entry) string { return e.Schedule + " " + p.shellCommand(e, crontabWord) }

// Crontab is the plan as lines of a crontab, for `crontab -e`.
func (p Plan) Crontab() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# The cleanup layers of sbx on %s. Add them with `crontab -e`; `sbx cron check`\n", commentLines(p.Host))
	b.WriteString("# proves that they ran. cron mails what a run prints: terminated sandboxes and errors.\n")
	b.WriteString("# They act by --yes. A cleanup line of your own without it only prints a plan, unless\n" +
		"# SBX_UNATTENDED=1 stands above it, or the configuration has cleanup: {unattended: true}.\n")
	b.WriteString("#MAILTO=oncall@example.com\n" + p.guardComment())
	if len(p.Needs) > 0 {
		fmt.Fprintf(&b, "# They read %s from %s,\n# one NAME=value per line, for its owner alone (chmod 600).\n", strings.Join(p.Needs, " "), commentLines(p.EnvFile))
	}
	b.WriteString(p.remarkComments())
	for _, e := range p.Entries() {
		fmt.Fprintf(&b, "\n# %s: %s\n%s\n", e.job.name, e.Say, p.crontabLine(e))
	}
	for _, e := range p.withheldEntries() {
		fmt.Fprintf(&b, "\n# %s, of production, which was not asked for: %s\n#%s\n", e.job.name, e.Say, p.crontabLine(e))
	}
	for _, e := range p.offeredEntries() {
		fmt.Fprintf(
			&b, "\n# %s: %s.\n# It also terminates active sandboxes. To enable it, remove the # of the next line.\n#%s\n", e.job.name, e.Say, p.crontabLine(e),
		)
	}
	return b.String()
}

func commentLines(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '?'
		}
		return r
	}, text)
}

// isBareRune says that neither a shell nor systemd gives a character any meaning.
func isBareRune(r rune) bool {
	return (r >= '0' && r <= '9') || (r >= 'A' && r <= 'Z') || (r >= 'a' && r <= 'z') || strings.ContainsRune("_-+=:,./@", r)
}

func needsQuotes(word string) bool {
	return word == "" || strings.ContainsFunc(word, func(r rune) bool { return !isBareRune(r) })
}

// crontabWord quotes a word for the shell of a crontab, where a % ends the command unless a
// backslash precedes it. The pair is outside quotes: whether cron or the shell removes the
// backslash, a % is left.
func crontabWord(word string) string {
	parts := strings.Split(word, "%")
	if len(parts) == 1 {
		return shellescape.Quote(word)
	}
	for i, part := range parts {
		if part != "" {
			parts[i] = shellescape.Quote(part)
		}
	}
	return strings.Join(parts, `\%`)
}

func shellAssignment(pair string, quote func(string) string) string {
	name, value, _ := strings.Cut(pair, "=")
	return name + "=" + quote(value)
}

// unitWord writes one word of a command line in a unit; dollars says that systemd
// would put a variable there.
func unitWord(word string, dollars bool) string {
	quoted := needsQuotes(word)
	word = strings.ReplaceAll(word, "%", "%%")
	if dollars {
		word = strings.ReplaceAll(word, "$", "$$")
	}
	if !quoted {
		return word
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(word) + `"`
}

// unitPath writes a text for a setting that takes the whole line and no quotes.
func unitPath(path string) string { return strings.ReplaceAll(path, "%", "%%") }

// CheckWord refuses what neither a crontab nor a unit can hold in one line.
func CheckWord(word string) error {
	if i := strings.IndexFunc(word, func(r rune) bool { return r < ' ' || r == 0x7f || r == 0xfffd }); i >= 0 {
		return fmt.Errorf("%q has a line end or another character that a cron line cannot contain", word)
	}
	return nil
}

// File is one unit.
type File struct{ Name, Text string }

// timerCalendar is the times of a timer. Layers of one host start in different minutes; a fixed
// random delay separates hosts.
func (j job) timerCalendar() string {
	if j.every >= time.Hour {
		return fmt.Sprintf("*:%02d", j.place)
	}
	return fmt.Sprintf("*:%d/%d", j.place, int(j.every/time.Minute))
}

// Units are a service and a timer for each layer, for the system's manager.
func (p Plan) Units() []File {
	var list []File
	for _, e := range p.Entries() {
		list = append(list, File{e.Unit, p.serviceUnit(e)}, File{strings.TrimSuffix(e.Unit, ".service") + ".timer", e.timerUnit()})
	}
	return list
}

// Systemd is all units as one text, each under the name of its file.
func (p Plan) Systemd() string {
	var b strings.Builder
	b.WriteString("# The cleanup layers of sbx. Save each part in the file that its first line names, then:\n" +
		"#   systemctl daemon-reload && systemctl enable --now sbx-LAYER.timer\n" +
		"# `sbx cron check` proves that they ran.\n" + p.guardComment() + p.remarkComments())
	for _, f := range p.Units() {
		fmt.Fprintf(&b, "\n# /etc/systemd/system/%s\n%s", f.Name, f.Text)
	}
	return b.String()
}

func (e Entry) timerUnit() string {
	return fmt.Sprintf(`[Unit]
Description=sbx layer %s, every %s
Documentation=man:sbx-cron(1)

[Timer]
OnCalendar=%s
RandomizedDelaySec=50s
FixedRandomDelay=yes
AccuracySec=1s
Persistent=yes

[Install]
WantedBy=timers.target
`, e.Layer, sandbox.FormatDuration(e.job.every), e.Calendar)
}

// serviceUnit is one run. Twice its period ends a run that hangs, with TERM, so that
// its journal says where it was.
func (p Plan) serviceUnit(e Entry) string {
	var b strings.Builder
	fmt.Fprintf(
		&b,
		"[Unit]\nDescription=sbx layer %s: %s\nDocumentation=man:sbx-cron(1)\nWants=network-online.target\nAfter=network-online.target\n\n[Service]\nType=oneshot\n",
		e.Layer, unitPath(e.Say),
	)
	if p.User != "" {
		b.WriteString("User=" + p.User + "\n")
	}
	b.WriteString("ExecStart=" + execLine(e.Argv) + "\n")
	fmt.Fprintf(&b, "TimeoutStartSec=%s\n", sandbox.FormatDuration(2*e.job.every))
	for _, pair := range e.Env {
		b.WriteString("Environment=" + unitWord(pair, false) + "\n")
	}
	if len(p.Needs) > 0 {
		fmt.Fprintf(&b, "# holds %s, one NAME=value per line, for root alone (chmod 600).\n", strings.Join(p.Needs, " "))
		b.WriteString("# Instead: LoadCredential=NAME:PATH here, and in the profile\n" +
			"# token_command: [sh, -c, 'cat \"$CREDENTIALS_DIRECTORY/NAME\"']\n")
		b.WriteString("EnvironmentFile=-" + unitPath(p.EnvFile) + "\n")
	}
	b.WriteString(p.sandboxingDirectives())
	return b.String()
}

// execLine leaves the dollars of the program's path alone: systemd puts variables
// only into what follows.
func execLine(argv []string) string {
	words := make([]string, len(argv))
	for i, w := range argv {
		words[i] = unitWord(w, i > 0)
	}
	return strings.Join(words, " ")
}

// sandboxingDirectives are systemd's restrictions of a run. Where sandboxes are processes of
// this machine a run needs more rights: it ends them and removes their control groups.
func (p Plan) sandboxingDirectives() string {
	var b strings.Builder
	b.WriteString("NoNewPrivileges=yes\nUMask=0077\nProtectSystem=strict\nProtectHome=read-only\n")
	b.WriteString("# state and metrics; the folders must exist\n")
	for _, dir := range p.writableFolders() {
		b.WriteString("ReadWritePaths=" + unitWord(dir, false) + "\n")
	}
	b.WriteString("ProtectClock=yes\nProtectHostname=yes\nProtectKernelModules=yes\nRestrictRealtime=yes\nRestrictSUIDSGID=yes\nLockPersonality=yes\n" +
		"MemoryDenyWriteExecute=yes\nSystemCallArchitectures=native\nRestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX\n")
	if p.HostProcesses != "" {
		b.WriteString("# not set, since the profile of type " + p.HostProcesses + " ends processes of this machine and removes\n" +
			"# their control groups: PrivateTmp, PrivateDevices, ProtectControlGroups,\n" +
			"# ProtectKernelTunables, ProtectKernelLogs, ProtectProc, RestrictNamespaces,\n" +
			"# CapabilityBoundingSet, SystemCallFilter\n")
		return b.String()
	}
	b.WriteString("PrivateTmp=yes\nPrivateDevices=yes\nProtectControlGroups=yes\nProtectKernelTunables=yes\nProtectKernelLogs=yes\n" +
		"ProtectProc=invisible\nRestrictNamespaces=yes\nCapabilityBoundingSet=\nSystemCallFilter=@system-service\n")
	return b.String()
}
