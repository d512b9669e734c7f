package output

import (
	"slices"
	"strings"

	"github.com/olekukonko/tablewriter/pkg/twwidth"
)

// gap is the space between two columns.
const gap = 2

// minText is the least that is left of a text column, in cells, and goodText what it keeps
// for as long as a column can be left out instead.
const (
	minText  = 8
	goodText = 18
)

// ReasonCells is what a column of reasons keeps while names can be cut: as much as the longest
// usual reason, "unjudged: over memory limit?".
const ReasonCells = 28

// cellWidth counts the terminal cells of text without its colour, as the library that draws
// tables does. East Asian ambiguous characters count as one, whatever the locale.
func cellWidth(text string) int {
	for i := range len(text) {
		if text[i] < ' ' || text[i] > '~' {
			return twwidth.WidthWithOptions(text, twwidth.Options{})
		}
	}
	return len(text)
}

// tableColumn is what the layout knows of one column.
type tableColumn struct {
	title string
	width int  // of the widest cell, the title included
	text  bool // running text, which may be cut
	keep  int  // how much of it stays while other texts can be cut
	spare bool // a line that is too long may do without it
	empty bool // no row has a value
	ref   bool // the reference, without which nothing can be done about a row
}

// measureTable measures the rows of a table. A cell of noValue is no value.
func measureTable(columns []tableColumn, rows [][]string) {
	for i := range columns {
		columns[i].width, columns[i].empty = cellWidth(columns[i].title), true
		for _, row := range rows {
			columns[i].width = max(columns[i].width, cellWidth(row[i]))
			columns[i].empty = columns[i].empty && isNoValue(row[i])
		}
	}
}

func isNoValue(cell string) bool { return cell == noValue || cell == "" }

// keepColumns says which columns a table keeps that another one leaves out.
type keepColumns struct {
	empty bool // those without a value
	all   bool // every one, since they were asked for: a line may be longer than the terminal
}

// fitTable chooses the columns that a line of limit cells (0 = any number) has room for, and
// sets their widths. Columns without a value are left out. Where the line is too long, texts
// are cut to goodText, then spare columns are left out from the right, then texts are cut to
// minText, then other columns are dropped from the right. The reference stays, where there is none
// the first column, also on a line that has no room for it alone.
func fitTable(columns []tableColumn, limit int, keep keepColumns) (shown, dropped []int) {
	for i, c := range columns {
		if keep.empty || keep.all || !c.empty {
			shown = append(shown, i)
		}
	}
	if len(shown) == 0 && len(columns) > 0 {
		shown = []int{0}
	}
	if limit <= 0 {
		return shown, nil
	}
	for !cutTexts(columns, shown, limit, goodText, true) {
		at := lastSpare(columns, shown)
		if at < 0 || keep.all {
			return dropColumns(columns, shown, limit, keep.all)
		}
		shown = slices.Delete(shown, at, at+1)
	}
	return shown, nil
}

// dropColumns cuts texts to minText and drops columns from the right until the line fits, those that keep their
// room last, since they say why; with all it drops none. Where nothing fits, texts are cut all the same.
func dropColumns(columns []tableColumn, shown []int, limit int, all bool) (left, dropped []int) {
	for !cutTexts(columns, shown, limit, minText, true) && !cutTexts(columns, shown, limit, minText, false) {
		if all || len(shown) == 1 {
			for _, i := range shown {
				if c := &columns[i]; c.text {
					c.width = min(c.width, max(minText, cellWidth(c.title)))
				}
			}
			break
		}
		at := firstToDrop(columns, shown)
		dropped = append(dropped, shown[at])
		shown = slices.Delete(shown, at, at+1)
	}
	slices.Sort(dropped)
	return shown, dropped
}

// firstToDrop is the place in shown, of two columns or more, of the one that is dropped next.
func firstToDrop(columns []tableColumn, shown []int) int {
	at := -1
	for i, c := range shown {
		if !columns[c].ref && i > 0 && (columns[c].keep == 0 || at < 0 || columns[shown[at]].keep > 0) {
			at = i
		}
	}
	return max(at, 0) // the reference stands behind the first column, which goes last
}

// noRoom says which columns of a table a terminal does not show.
func noRoom(names []string) string { return "no room for " + strings.Join(names, ", ") }

// lastSpare is the place in shown of the last spare column; -1 = there is none.
func lastSpare(columns []tableColumn, shown []int) int {
	for at := len(shown) - 1; at > 0; at-- {
		if columns[shown[at]].spare {
			return at
		}
	}
	return -1
}

// cutTexts takes from the widest texts, cell by cell, what the line is too long by, and
// leaves each at least floor cells, its title, and with keeps what the column keeps. It
// changes no width unless the line fits then.
func cutTexts(columns []tableColumn, shown []int, limit, floor int, keeps bool) bool {
	widths := make([]int, len(shown))
	total := gap * (len(shown) - 1)
	for i, at := range shown {
		widths[i] = columns[at].width
		total += widths[i]
	}
	for total > limit {
		widest := -1
		for i, at := range shown {
			least := max(floor, cellWidth(columns[at].title))
			if keeps {
				least = max(least, columns[at].keep)
			}
			if columns[at].text && widths[i] > least && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return false
		}
		widths[widest]--
		total--
	}
	for i, at := range shown {
		columns[at].width = widths[i]
	}
	return true
}

// pickShown picks the shown ones of what there is for each column.
func pickShown[T any](all []T, shown []int) []T {
	picked := make([]T, len(shown))
	for i, at := range shown {
		picked[i] = all[at]
	}
	return picked
}

// stackRow writes one row as lines of "key: value", those without a value left out. It is the
// form for a screen reader.
func (s screen) stackRow(margin string, titles, cells []string) string {
	var b strings.Builder
	for i, title := range titles {
		if !isNoValue(cells[i]) {
			b.WriteString(s.keyLine(margin, strings.ToLower(strings.ReplaceAll(title, "_", " ")), cells[i]))
		}
	}
	return b.String()
}

// keyLine writes "key: value", wrapped with an indent. A screen reader wraps by itself.
func (s screen) keyLine(margin, key, value string) string {
	line := strings.TrimRight(key+": "+value, " ")
	lines := WrapText(line, s.textRoom(margin), indent)
	for i := range lines {
		lines[i] = strings.TrimRight(margin+lines[i], " ") + "\n"
	}
	return strings.Join(lines, "")
}

// textRoom is the width for text behind a margin; 0 = unlimited. A screen reader wraps by
// itself.
func (s screen) textRoom(margin string) int {
	if s.width <= 0 || s.accessible {
		return 0
	}
	return max(1, s.width-len(margin))
}

// cut shortens text to at most limit cells, the last of them an ellipsis; a limit below one
// means none. Text may not have colour.
func (s screen) cut(text string, limit int) string {
	if limit < 1 || cellWidth(text) <= limit {
		return text
	}
	rest := s.ellipsis()
	if cellWidth(rest) > limit {
		rest = rest[:min(limit, len(rest))]
	}
	var b strings.Builder
	used := 0
	for _, r := range text {
		w := cellWidth(string(r))
		if used+w > limit-cellWidth(rest) {
			break
		}
		b.WriteRune(r)
		used += w
	}
	return b.String() + rest
}

// WrapText breaks text at spaces into lines of at most limit cells, further lines with an
// indent; words longer than that stay whole, so that references and commands can be copied.
// A limit below one means no wrapping.
func WrapText(text string, limit int, hang string) []string {
	if limit < 1 || cellWidth(text) <= limit {
		return []string{text}
	}
	var lines []string
	line, used := "", -1 // -1 = nothing is on the line yet
	for word := range strings.SplitSeq(text, " ") {
		w := cellWidth(word)
		switch {
		case used < 0:
			line, used = line+word, cellWidth(line)+w
		case used+1+w <= limit:
			line, used = line+" "+word, used+1+w
		default:
			lines = append(lines, line)
			line, used = hang+word, cellWidth(hang)+w
		}
	}
	return append(lines, line)
}

func longestWord(text string) int {
	longest := 0
	for word := range strings.SplitSeq(text, " ") {
		longest = max(longest, cellWidth(word))
	}
	return longest
}
