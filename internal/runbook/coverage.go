package runbook

import (
	"cmp"
	"errors"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"sbx/internal/check"
	"sbx/internal/cond"
	"sbx/internal/fault"
)

// CoverageFile is the document beside the runbooks that says where the requirements are answered
// which no runbook claims.
const CoverageFile = "coverage.yaml"

// Class is how a requirement is answered.
type Class string

// The closed list.
const (
	Automated Class = "automated" // a verb or a rule does it
	Asked     Class = "asked"     // a runbook asks a person and keeps the answer
	Manual    Class = "manual"    // a runbook tells a person what to do
	Elsewhere Class = "elsewhere" // a page says it
	Planned   Class = "planned"   // nothing does it yet
)

// Table is the document of CoverageFile.
type Table struct {
	APIVersion Word         `key:"apiVersion,required" words:"sbx/v1"`
	Kind       Word         `key:"kind,required" words:"Coverage"`
	Entries    []TableEntry `key:"entries,required"`
}

// TableEntry says where some requirements are answered.
type TableEntry struct {
	Class Word   `key:"class,required" words:"automated,elsewhere,planned"`
	Where string `key:"where,required"`
	Rows  []Word `key:"rows,required"`
}

// ParseTable reads the document of CoverageFile strictly.
func ParseTable(file string, content []byte) (Table, []Finding) {
	var t Table
	_, found := parseInto(file, content, &t)
	return t, found
}

// ReadTable reads CoverageFile among the shipped documents.
func ReadTable(shipped fs.FS) (Table, error) {
	content, err := fs.ReadFile(shipped, CoverageFile)
	if err != nil {
		return Table{}, err
	}
	t, found := ParseTable(CoverageFile, content)
	return t, joinErrors(found)
}

// Claim says that a requirement is answered at one place.
type Claim struct {
	ID      string
	Class   Class
	Where   string // a command line or a page
	Runbook string // "" = none
	Step    string // of the runbook; "" = none
}

// CoverageRow is a requirement with the places that answer it.
type CoverageRow struct {
	ID     string
	Class  Class
	Claims []Claim
}

// Coverage puts each requirement that is answered into its class. The error names those that are in
// several. That none is missing is a test's to show.
func Coverage(books []*Runbook, table Table) ([]CoverageRow, error) {
	claims := map[string][]Claim{}
	for _, b := range books {
		for _, c := range b.claims() {
			claims[c.ID] = append(claims[c.ID], c)
		}
	}
	var errs []error
	for _, e := range table.Entries {
		for _, row := range e.Rows {
			if first := claims[string(row)]; len(first) > 0 {
				errs = append(errs, fault.New(fault.KindFound, "%s is in %s, and %s claims it already", row, CoverageFile, first[0].place()))
			}
			claims[string(row)] = append(claims[string(row)], Claim{ID: string(row), Class: Class(e.Class), Where: e.Where})
		}
	}
	var rows []CoverageRow
	for _, id := range slices.SortedFunc(maps.Keys(claims), compareRows) {
		all := claims[id]
		if i := slices.IndexFunc(all, func(c Claim) bool { return c.Class != all[0].Class }); i >= 0 {
			errs = append(errs, fault.New(fault.KindFound, "%s is %s by %s and %s by %s", id, all[0].Class, all[0].place(), all[i].Class, all[i].place()))
		}
		rows = append(rows, CoverageRow{id, all[0].Class, all})
	}
	return rows, errors.Join(errs...)
}

func (c Claim) place() string {
	switch {
	case c.Runbook == "":
		return CoverageFile
	case c.Step == "":
		return c.Runbook
	}
	return c.Runbook + "/" + c.Step
}

var rowID = regexp.MustCompile(`^([A-Z])(\d+)(?:-(\d+))?$`)

// compareRows orders requirements as their page does: R9 before R10, R before S0-1.
func compareRows(a, b string) int {
	one, two := rowID.FindStringSubmatch(a), rowID.FindStringSubmatch(b)
	if one == nil || two == nil {
		return strings.Compare(a, b)
	}
	number := func(text string) int {
		n, _ := strconv.Atoi(text) // "" is 0
		return n
	}
	return cmp.Or(strings.Compare(one[1], two[1]), cmp.Compare(number(one[2]), number(two[2])), cmp.Compare(number(one[3]), number(two[3])))
}

// Verbs that evaluate alerts, and symptoms.
const (
	lookAtAlerts   = "sbx verify"
	lookAtSymptoms = "sbx diagnose"
)

// claims are the requirements that the document answers. The class follows from the kind of what
// claims them.
func (r *Runbook) claims() []Claim {
	id := string(r.Metadata.ID)
	var all []Claim
	add := func(class Class, where, step string, rows ...Word) {
		for _, row := range rows {
			all = append(all, Claim{string(row), class, r.Fill(where), id, step})
		}
	}
	page, show := "runbooks/"+r.PageName(), "sbx runbook show "+id
	add(Elsewhere, page, "", r.Metadata.Rows...)
	alerts := slices.Clone(r.Metadata.Alerts)
	for _, e := range r.Spec.Escalation {
		alerts = append(alerts, e.Alert)
		add(Automated, lookAtAlerts, "", e.Rows...)
	}
	for _, a := range alerts {
		if rule, ok := check.Alert(string(a)); ok {
			add(Automated, lookAtAlerts, "", Word(rule.Row))
		}
	}
	walk(r, func(_ string, value any) {
		switch v := value.(type) {
		case Step:
			class, where := v.class()
			for _, row := range v.Claims() {
				add(class, cmp.Or(where, show), string(v.ID), Word(row))
			}
		case Cause:
			add(Automated, lookAtSymptoms, "", v.Rows...)
			for _, s := range v.Known().Symptoms {
				add(Automated, lookAtSymptoms, "", Word(s.Row))
			}
		case Procedure:
			add(Manual, show, "", v.Rows...)
		case Contact:
			add(Automated, "docs/ALERTS.md", "", v.Rows...)
		case Note:
			add(Elsewhere, page, "", v.Rows...)
		case Question:
			if len(v.AnsweredBy) == 0 {
				add(Asked, "sbx incident note --answer "+string(v.ID)+" TEXT", "", v.Rows...)
				return
			}
			add(Automated, "sbx incident report", "", v.Rows...)
		case Task:
			if v.Where == "" {
				add(Manual, show, "", v.Rows...)
				return
			}
			add(Automated, v.Where, "", v.Rows...)
		}
	})
	return all
}

// class is how a step answers its requirements, and the command that does; "" = the page of the
// runbook.
func (s Step) class() (class Class, where string) {
	condition := cmp.Or(s.Check, s.WaitUntil)
	switch s.Kind() {
	case KindManual:
		if s.Ask == "" {
			return Manual, ""
		}
		return Asked, ""
	case KindConfirm:
		return Asked, ""
	case KindCheck, KindWaitUntil:
		return Automated, commandOf(condition)
	case KindCollect, KindAct, kindNone:
	}
	if lines := s.Lines(); len(lines) > 0 {
		return Automated, lines[0]
	}
	return Manual, ""
}

// commandOf is the command that reads the names of a condition.
func commandOf(condition Condition) string {
	c, err := cond.Compile(string(condition), Schema(nil))
	if err != nil {
		return ""
	}
	for _, name := range c.Names() {
		if strings.HasPrefix(name, alertPrefix) {
			return lookAtAlerts
		}
		if by := CollectorsOf(name); len(by) > 0 {
			collector, _ := findCollector(Word(by[0]))
			return "sbx " + collector.Command
		}
	}
	return ""
}
