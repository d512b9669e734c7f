package output

import (
	"strings"
	"time"
)

// CellTable is what the format `table` shows of items, its head first, each line exactly width cells wide. The
// columns and their widths are those that these items need.
func CellTable[T any](c Cells, columns []Column[T], items []T, width int, now time.Time) []string {
	s := screen{ascii: c.ASCII, colour: !c.Plain}
	chosen, _ := chooseColumns(erasedColumns(columns), nil, Default) // no name is asked for
	layout, texts, tones := make([]tableColumn, len(chosen)), make([][]string, len(items)+1), make([][]Tone, len(items)+1)
	for i, column := range chosen {
		layout[i] = tableColumn{title: column.title, spare: column.spare, keep: column.keep, ref: column.name == "ref"}
		texts[0], tones[0] = append(texts[0], column.title), append(tones[0], Muted)
	}
	for n := range items {
		values := readValues(nil, chosen, &items[n])
		for i, column := range chosen {
			text, tone := column.cell(&items[n], values[i], s, now)
			texts[n+1], tones[n+1] = append(texts[n+1], text), append(tones[n+1], tone)
			layout[i].text = layout[i].text || !column.whole && runningText(values[i], column.name)
		}
	}
	measureTable(layout, texts[1:])
	shown, _ := fitTable(layout, width, keepColumns{}) // what does not fit even then is cut
	lines := make([]string, len(texts))
	for n := range texts {
		var b strings.Builder
		left := width
		for _, at := range shown {
			room := min(left, layout[at].width)
			if room == 0 {
				break
			}
			text := s.cut(texts[n][at], room)
			b.WriteString(s.paint(text, tones[n][at]) + strings.Repeat(" ", min(left, room+gap)-cellWidth(text)))
			left -= min(left, room+gap)
		}
		lines[n] = b.String() + strings.Repeat(" ", left)
	}
	return lines
}
