package tui

import (
	"context"
	"maps"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"sbx/internal/ops/look"
	"sbx/internal/output"
	"sbx/internal/sandbox"
)

// Model is the dashboard. Only Update changes it.
type Model struct {
	ctx    context.Context //nolint:containedctx // of the commands, which Bubble Tea starts
	source Source
	now    func() time.Time
	cells  output.Cells

	program  string // what sbx is called
	operator string // who is at the screen, as the records name them; "" = not known
	mouse    bool   // the terminal reports clicks and the wheel
	shell    func(context.Context, sandbox.Ref) error
	bound    []binding // nil = bindings

	feeds             []*feed
	looked            map[sandbox.Ref]*look.LiveLook // the newest look at each sandbox
	looking, sweeping bool                           // at rows on the screen, at others
	nextLook          time.Time                      // while many were looked at
	sparks            sparks
	tasks             taskList

	tab     tab
	order   order
	reverse bool
	filter  string
	typing  bool // keys go into the filter
	counts  [tabs]int
	rows    []*row   // of the tab, in their order
	sorting []ranked // room to sort them in
	cursor  sandbox.Ref
	at, top int   // the cursor's row, and the first row on the screen
	held    bool  // a key was pressed since the rows were chosen: the cursor stays on its sandbox
	page    *page // shown in place of the table; nil = the table is
	log     *log  // that is followed; nil = none is

	want           wanted // by the filter
	unknownMatches []*row // of which a condition holds neither true nor false

	marked   map[sandbox.Ref]bool
	act      *act                          // whose page is open; nil = none
	rail     *rail                         // of the newest run of the runbook; nil = none
	steps    steps                         // of the runbook
	gone     map[sandbox.Ref]*look.LiveRow // what was ended here
	unlisted []row                         // those of it that no list has
	keeping  []sandbox.Ref                 // for which the key to keep was pressed once
	running  sync.WaitGroup
	quitting bool // as soon as the act and the run of the runbook are over

	paused, away  bool
	notice        string // of the last key, or a warning since; "" = none
	width, height int
}

// page is a text in place of the table.
type page struct {
	title string
	lines []string
	top   int

	unwrapped []string // of the page of an act, which is wrapped again where the screen has another width
	verb      string   // that prints the page; "" = none does
	ref       sandbox.Ref
	log       *log          // of a page of lines that come; nil = of another one
	tones     []output.Tone // of the lines of a log
	step      int           // the step of the runbook that it shows; 0 = none
}

// NewModel is a dashboard that has not read anything. ctx ends its reads.
func NewModel(ctx context.Context, source Source, now func() time.Time, program string, cells output.Cells) *Model {
	m := &Model{
		ctx: ctx, source: source, now: now, program: program, cells: cells, looked: map[sandbox.Ref]*look.LiveLook{}, sparks: sparks{},
		steps: steps{pages: shippedSteps()}, tab: tabAll, width: 80, height: 24,
	}
	for _, name := range source.Profiles() {
		m.feeds = append(m.feeds, &feed{profile: name})
	}
	return m
}

// Init starts the first round of every profile.
func (m *Model) Init() tea.Cmd {
	return tea.Batch(m.pollDue(m.now()), m.tasksDue(m.now()), m.stepsDue(m.now()), m.beatOn(), m.askBackground())
}

// Update takes a message. It reads nothing itself.
func (m *Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) { //nolint:ireturn // as the library asks for
	now := m.now()
	m.leaveLog()
	switch msg := msg.(type) {
	case beatMsg: // only times on the screen have changed
		return m, tea.Batch(m.pollDue(now), m.lookDue(now), m.tasksDue(now), m.stepsDue(now), m.beatOn())
	case roundMsg:
		m.take(msg, now)
		m.rebuild()
		return m, m.lookDue(now)
	case lookMsg:
		m.takeLooks(msg, now)
		return m, m.lookDue(now)
	case tasksMsg:
		m.takeTasks(msg, now)
	case pageMsg:
		m.showPage(msg)
	case logMsg:
		return m, m.takeLog(msg)
	case planMsg:
		m.showPlan(msg)
	case reportMsg:
		return m, m.report(msg)
	case doneMsg:
		return m, m.finish(msg)
	case stepsMsg:
		m.takeSteps(msg)
	case cleanupMsg:
		m.takeCleanup(msg, now)
	case railEvent:
		return m, m.takeRail(msg)
	case noticeMsg:
		m.notice = string(msg)
	case shellMsg:
		m.endShell(msg)
	case keptMsg:
		return m, m.takeKept(msg)
	case tea.KeyPressMsg:
		return m, m.press(msg)
	case tea.MouseMsg:
		return m, m.takeMouse(msg)
	default:
		return m, m.takeTerminal(msg)
	}
	return m, nil
}

// profile16 is what a terminal with 16 colours is called.
const profile16 = "ANSI"

// takeTerminal takes what the terminal says, keys and mouse apart.
func (m *Model) takeTerminal(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		return m.resize(msg.Width, msg.Height)
	case tea.ColorProfileMsg:
		m.cells.Few = msg.String() == profile16
	case tea.BackgroundColorMsg:
		m.takeBackground(msg)
	case tea.FocusMsg:
		m.away = false
	case tea.BlurMsg:
		m.away = true
	case tea.PasteMsg:
		m.paste(msg.Content)
	}
	return nil
}

// resize takes the size of the terminal. A page of a verb is read again where it has another width.
func (m *Model) resize(width, height int) tea.Cmd {
	before := m.pageWidth()
	m.width, m.height = width, height
	m.moveTo(m.at)
	if p := m.page; p != nil {
		if p.unwrapped != nil {
			p.lines = m.wrapped(p.unwrapped...)
		}
		p.top = max(0, min(p.top, len(p.lines)-m.pageHeight()))
		if p.verb != "" && p.log == nil && m.pageWidth() != before {
			return m.openPageOf(p.verb, p.ref)
		}
	}
	return nil
}

// paste takes a text into what is typed.
func (m *Model) paste(text string) {
	switch {
	case m.answering():
		m.rail.typed = typed(m.rail.typed, "", text)
	case m.act != nil:
		m.act.typed = typed(m.act.typed, "", text)
	default:
		m.typeText("", text)
	}
}

// showPage shows what was read, unless another page is open by now.
func (m *Model) showPage(msg pageMsg) {
	p := m.page
	if p == nil || p.verb != msg.verb || p.ref != msg.ref {
		return
	}
	p.lines = splitLines(msg.text)
	if msg.err != nil {
		p.lines = append(p.lines, "", "error: "+msg.err.Error())
	}
	p.top = max(0, min(p.top, len(p.lines)-m.pageHeight()))
}

// takeLooks keeps what sandboxes have told.
func (m *Model) takeLooks(msg lookMsg, now time.Time) {
	if msg.swept {
		m.sweeping = false
	} else {
		m.looking = false
	}
	maps.DeleteFunc(m.looked, func(_ sandbox.Ref, l *look.LiveLook) bool { return now.Sub(l.At).Abs() >= lookKeeps })
	for _, l := range msg.looks {
		l.At = msg.at
		m.looked[l.Sandbox.Ref()] = &l
	}
	m.sparks.add(msg.looks)
	m.rebuild()
	m.sparks.dropGone(m.all())
}
