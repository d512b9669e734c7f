package output

import (
	"strconv"
	"strings"

	"sbx/internal/process"
)

// The environment variables that this room reads, beside NO_COLOR, TERM and the locale.
const (
	// EnvAccessible asks for output that a screen reader can speak: rows as "key: value" and
	// no line that changes in place. Anything but 0 and false turns it on.
	EnvAccessible = "SBX_ACCESSIBLE"
	// envColumns is the width of a table that is laid out in a pipe, in cells.
	envColumns = "COLUMNS"
)

// screen is what is known of the terminal that a stream writes to. The zero value is a pipe:
// nothing is cut, coloured (unless CLICOLOR_FORCE asks for it) or transliterated.
type screen struct {
	tty        bool // a terminal, or a pipe that shows what a terminal would (Format.laidOutInPipe)
	width      int  // in cells; 0 = unlimited
	colour     bool
	ascii      bool // its locale has no character beyond ASCII
	accessible bool // a screen reader speaks what it shows
	dumb       bool // it cannot move its cursor
	background Background
}

func screenOf(p process.Process, s process.Stream, o Options) screen {
	colour := wantsColor(p, s, o)
	if !s.TTY {
		return screen{colour: colour}
	}
	dumb := p.Getenv("TERM") == "dumb"
	return screen{
		tty: true, width: s.Width, dumb: dumb, ascii: asciiLocale(p), accessible: Accessible(p),
		colour: colour,
	}
}

// stdoutScreen is the screen of stdout. A table that is laid out in a pipe has the width of COLUMNS, else any.
func stdoutScreen(p process.Process, o Options) screen {
	s := screenOf(p, p.Stdout, o)
	if !s.tty && o.Format.laidOutInPipe() {
		width, err := strconv.Atoi(p.Getenv(envColumns))
		if err != nil {
			width = 0
		}
		s.tty, s.dumb, s.width, s.ascii, s.accessible = true, true, max(width, 0), asciiLocale(p), Accessible(p)
	}
	return s
}

// wantsColor says that the terminal supports colour, or that CLICOLOR_FORCE asks for it
// anywhere (https://bixense.com/clicolors), and that nothing turns it off
// (https://no-color.org, --no-color, TERM=dumb, CLICOLOR=0).
func wantsColor(p process.Process, s process.Stream, o Options) bool {
	if o.NoColor || p.Getenv("NO_COLOR") != "" {
		return false
	}
	if force := p.Getenv("CLICOLOR_FORCE"); force != "" && force != "0" {
		return true
	}
	return s.TTY && p.Getenv("TERM") != "dumb" && p.Getenv("CLICOLOR") != "0"
}

// Accessible reports whether a screen reader speaks what is shown (SBX_ACCESSIBLE).
func Accessible(p process.Process) bool { return isOn(p.Getenv(EnvAccessible)) }

// ASCIIOnly reports whether the terminal has no characters beyond ASCII, by its locale.
func ASCIIOnly(p process.Process) bool { return asciiLocale(p) }

func isOn(value string) bool {
	on, err := strconv.ParseBool(value)
	return value != "" && (on || err != nil)
}

// asciiLocale says that the locale names a character set other than UTF-8. Where no locale is
// set, as in most containers, the terminal is taken for one with UTF-8.
func asciiLocale(p process.Process) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		locale := strings.ToLower(p.Getenv(name))
		if locale == "" {
			continue
		}
		_, charset, given := strings.Cut(locale, ".")
		charset, _, _ = strings.Cut(charset, "@")
		if !given {
			return locale == "c" || locale == "posix"
		}
		return charset != "utf-8" && charset != "utf8"
	}
	return false
}

// escape is Escape for this screen.
func (s screen) escape(text string) string { return s.toASCII(Escape(text)) }

// toASCII writes what the screen cannot show as \u65e5.
func (s screen) toASCII(text string) string {
	if !s.ascii || strings.IndexFunc(text, beyondASCII) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if beyondASCII(r) {
			b.WriteString(escapeRune(r))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func beyondASCII(r rune) bool { return r > 0x7e }

// ellipsis stands for the rest of a cell that was cut.
func (s screen) ellipsis() string {
	if s.ascii {
		return "..."
	}
	return "…"
}
