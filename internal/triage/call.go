package triage

import "strings"

// maxTarget bounds the name of a called service, in bytes.
const maxTarget = 80

// ExternalCall says whether the line begins a call to the outside that it does
// not also end, and whom it calls: a host with its port where the line names
// one, else the next word (ACCEPTANCE R73). Credentials and queries in an
// address are left out.
func (m *Matcher) ExternalCall(line string) (target string, calls bool) {
	return m.callIn(line, m.scan(line))
}

func (m *Matcher) callIn(line string, found scanned) (string, bool) {
	if !found.has(markCall) || found.has(markAnswered) || found.has(markBeat) {
		return "", false
	}
	rest := line[found.callEnd:]
	if hasStatus(rest) {
		return "", false
	}
	if host := hostIn(line); host != "" {
		return host, true
	}
	return firstWord(rest), true
}

// hostIn finds the host and port of the first address in a line.
func hostIn(line string) string {
	_, rest, found := strings.Cut(line, "://")
	if !found {
		return ""
	}
	if end := strings.IndexFunc(rest, endsAuthority); end >= 0 {
		rest = rest[:end]
	}
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		rest = rest[at+1:]
	}
	return clip(strings.TrimRight(rest, ".,:;"))
}

func endsAuthority(r rune) bool {
	return r <= ' ' || r > '~' || strings.ContainsRune("/?#\\\"'`<>(){}|,;", r)
}

// firstWord gives the next word without a query or quotes around it.
func firstWord(text string) string {
	fields := strings.Fields(text[:min(len(text), 4*maxTarget)])
	if len(fields) == 0 {
		return ""
	}
	word, _, _ := strings.Cut(fields[0], "?")
	word = strings.Trim(word, ".,:;\"'`()<>")
	if at := strings.LastIndexByte(word, '@'); at >= 0 {
		word = word[at+1:]
	}
	return clip(strings.ToValidUTF8(word, ""))
}

func clip(text string) string { return text[:min(len(text), maxTarget)] }

// hasStatus finds a lone HTTP status, 100 to 599: the call was answered.
func hasStatus(text string) bool {
	for field := range strings.FieldsSeq(text[:min(len(text), 1<<10)]) {
		f := strings.Trim(field, "\"'()[],;:.")
		if len(f) == 3 && f[0] >= '1' && f[0] <= '5' && digit(f[1]) && digit(f[2]) {
			return true
		}
	}
	return false
}

func digit(b byte) bool { return b >= '0' && b <= '9' }
