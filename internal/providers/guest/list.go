package guest

import (
	"strings"
	"time"
)

// Run is one program that Launch has started in a sandbox.
type Run struct {
	Tag       string
	StartedAt time.Time // zero where it never came to that
	Ended     bool
	Lost      bool // it ended, and nobody saw it
}

// List is a shell text that prints the runs of a sandbox; ParseList reads it.
func List() string { return parts + listText }

const listText = `for d in ` + folder + `/*; do
  [ -d "$d" ] && echo "run ${d##*/} $(state "$d") $(sed -n 's/^started //p' "$d/begin" 2>/dev/null)"
done
echo end
`

// ParseList reads what List printed, in the order of tags. fault.KindUnavailable
// around ErrOutput where the list has no end.
func ParseList(text []byte) ([]Run, error) {
	var runs []Run
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		switch {
		case len(words) == 1 && words[0] == "end":
			return runs, nil
		case len(words) < 3 || words[0] != "run" || !ValidTag(words[1]):
			continue
		}
		r := Run{Tag: words[1], Lost: words[2] == stateLost, Ended: words[2] != stateRunning}
		if len(words) > 3 {
			r.StartedAt = unix(words[3])
		}
		runs = append(runs, r)
	}
	return nil, refuse("the list of runs has no end")
}
