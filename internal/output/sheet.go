package output

// Sheet is a page about one thing for people: sections, fields, small tables, text.
// It escapes whatever it is given. The zero value is an empty page.
type Sheet struct{ blocks []block }

// block is one piece of a page.
type block struct {
	title  string // of a section
	fields []sheetField
	header []string
	rows   [][]any
	text   string
}

type sheetField struct {
	name  string
	value any
	tone  Tone
}

// Section begins a new part of the page.
func (s *Sheet) Section(title string) *Sheet {
	s.blocks = append(s.blocks, block{title: title})
	return s
}

// Field adds "name  value". Values are those of Column.Value; nil is shown as "-". Durations,
// numbers whose name ends in _seconds and instants are formatted for people.
func (s *Sheet) Field(name string, value any) *Sheet {
	return s.addField(sheetField{name, value, toneOf(value, name)})
}

// FieldTone is Field with the colour's meaning given.
func (s *Sheet) FieldTone(name string, value any, tone Tone) *Sheet {
	return s.addField(sheetField{name, value, tone})
}

func (s *Sheet) addField(f sheetField) *Sheet {
	if n := len(s.blocks); n > 0 && s.blocks[n-1].fields != nil {
		s.blocks[n-1].fields = append(s.blocks[n-1].fields, f)
		return s
	}
	s.blocks = append(s.blocks, block{fields: []sheetField{f}})
	return s
}

// Table adds aligned rows under headers. Cells are values as in Field. A row
// with fewer cells than headers is filled up, further cells are dropped.
func (s *Sheet) Table(headers []string, rows [][]any) *Sheet {
	if len(headers) > 0 && len(rows) > 0 {
		s.blocks = append(s.blocks, block{header: headers, rows: rows})
	}
	return s
}

// Text adds running text; its line breaks are kept, long lines are wrapped on a
// terminal.
func (s *Sheet) Text(text string) *Sheet {
	s.blocks = append(s.blocks, block{text: text})
	return s
}

// addFields adds every key of an object as one line.
func (s *Sheet) addFields(fields Fields) {
	for _, f := range fields {
		s.Field(f.Key, f.Value)
	}
}
