package safety

// Verb is a column of the table: one way in which sandboxes end.
type Verb string

// The closed list of verbs.
const (
	VerbTerminate       Verb = "terminate REF"
	VerbTerminatePiped  Verb = "terminate -"
	VerbTerminateDelete Verb = "terminate --delete"
	VerbCleanup         Verb = "cleanup"
	VerbApply           Verb = "cleanup --apply"
	VerbResume          Verb = "cleanup --resume"
	VerbReconcile       Verb = "reconcile --fix"
	VerbTask            Verb = "task" // run, stop, sweep: the sandbox of an attempt
	VerbKept            Verb = "kept" // what a task has kept, when its time is over or its task is stopped
	VerbDrill           Verb = "drill"
)

// Verbs lists them in the order of the table.
func Verbs() []Verb {
	return []Verb{
		VerbTerminate, VerbTerminatePiped, VerbTerminateDelete, VerbCleanup, VerbApply, VerbResume, VerbReconcile, VerbTask, VerbKept, VerbDrill,
	}
}

// Rule is a row of the table: one reason why a sandbox stays.
type Rule string

// The closed list of rules.
const (
	RuleProtected  Rule = "protected"
	RuleLeased     Rule = "leased"
	RuleKept       Rule = "kept on purpose"
	RuleOwned      Rule = "owned"
	RuleAtWork     Rule = "at work"
	RuleConfirmed  Rule = "confirmed"
	RuleProduction Rule = "production"
	RuleMaxDelete  Rule = "max_delete"
	RuleFraction   Rule = "max_fraction"
	RuleClock      Rule = "clock"
	RuleListed     Rule = "complete listing"
	RuleRecheck    Rule = "second look"
	RuleReplaced   Rule = "replaced id"
	RuleReadable   Rule = "readable record"
)

// Rules lists them in the order of the table.
func Rules() []Rule {
	return []Rule{
		RuleProtected, RuleLeased, RuleKept, RuleOwned, RuleAtWork, RuleConfirmed, RuleProduction, RuleMaxDelete, RuleFraction, RuleClock,
		RuleListed, RuleRecheck, RuleReplaced, RuleReadable,
	}
}

// Says is the rule in one sentence.
func (r Rule) Says() string {
	return map[Rule]string{
		RuleProtected:  "The label `sbx/keep` or the configuration (`protect`) keeps it.",
		RuleLeased:     "A living task is at work in it.",
		RuleKept:       "sbx keeps it on purpose: its task has kept it, or it waits to be used.",
		RuleOwned:      "It is not ours by `owned` of its profile.",
		RuleAtWork:     "It shows life, or nothing can tell.",
		RuleConfirmed:  "Nobody has allowed the run: `--yes`, or an answer at a terminal.",
		RuleProduction: "Its profile is production, and it is not named: 0 of a production profile end without `--production NAME`.",
		RuleMaxDelete:  "More would end than `--max-delete`.",
		RuleFraction:   "More than 5, and more than `--max-fraction` of the profile's fleet, would end.",
		RuleClock:      "The provider's clock and this machine's are more than 2 minutes apart, so that no age can be trusted.",
		RuleListed:     "Its provider could not be listed whole.",
		RuleRecheck:    "A read just before the request shows that it is not as it was when it was chosen.",
		RuleReplaced:   "That read shows another sandbox under its id.",
		RuleReadable:   "That read finds it, and its record cannot be read.",
	}[r]
}

// Kind says whether a rule binds a verb.
type Kind string

// The closed list of kinds.
const (
	Yes           Kind = "yes"
	No            Kind = "no"
	NotApplicable Kind = "n/a"
)

// Cell is one field of the table. What is not Yes has a reason; a Yes may have a remark.
type Cell struct {
	Kind Kind
	Why  string
}

// Binds says that the rule keeps a sandbox from this verb.
func (c Cell) Binds() bool { return c.Kind == Yes }

// Binding says whether a rule binds a verb. What the table does not name binds.
func Binding(v Verb, r Rule) Cell {
	if c, ok := exceptions()[r][v]; ok {
		return c
	}
	return Cell{Kind: Yes}
}

type row map[Verb]Cell

// exceptions are all fields that are no plain Yes.
func exceptions() map[Rule]row {
	return map[Rule]row{
		RuleProtected: {
			VerbTask:  {No, "the task has made it and is not over before it is gone; `--keep-alive` is how a task keeps its sandbox"},
			VerbDrill: {No, "it ends what it has staged itself, by a label of its own, and its load must not stay"},
		},
		RuleLeased: {
			VerbTask:  {NotApplicable, "the lease is its own: a fence in the store keeps any other process out"},
			VerbKept:  {No, "the list itself says which task was given it, and that one ends it"},
			VerbDrill: {NotApplicable, "no task is given a sandbox of a drill"},
		},
		RuleKept: {
			VerbTerminate:       {No, "a person who types its name is how it ends early"},
			VerbTerminateDelete: {No, "a person who types its name is how it ends early"},
			VerbDrill:           {NotApplicable, "nothing keeps a sandbox of a drill"},
		},
		RuleOwned: byHand(row{
			VerbTerminatePiped: {No, "each one is named; what a rule has listed is held against `protected`, `leased`, `kept on purpose`, `clock` and `production`"},
			VerbTask:           {No, "the task has made it"},
			VerbKept:           {No, "a task of this store has made it"},
			VerbDrill:          {No, "the label of the drill says whose it is"},
		}, "who names a sandbox decides"),
		RuleAtWork: byHand(row{
			VerbTerminatePiped: {No, "each one is named, and `ls --stuck` has looked"},
			VerbTask:           {No, "a limit or a stop ends it while it works"},
			VerbKept:           {No, "the time for which it was kept is over"},
			VerbDrill:          {No, "the drill knows what it has staged"},
		}, "who names a sandbox decides"),
		RuleConfirmed: byHand(row{
			VerbTerminatePiped: {Yes, "more than 5"},
			VerbTask:           {NotApplicable, "`run` and `stop` are the order"},
			VerbKept:           {NotApplicable, "`--keep-alive` and `stop` are the order"},
			VerbDrill:          {NotApplicable, "`drill` is the order"},
		}, ""),
		RuleProduction: {
			VerbTerminate:       {Yes, "one, typed as `profile/id`, is named"},
			VerbTerminateDelete: {Yes, "one, typed as `profile/id`, is named"},
			VerbResume:          {NotApplicable, "the guards of its run have said yes to the same plan, and it cannot grow"},
			VerbTask:            {No, "launching there needed its name, and it ends what it has made"},
			VerbKept:            {No, "launching there needed its name, and it ends what a task has made"},
			VerbDrill:           {NotApplicable, "it runs on `local` alone"},
		},
		RuleMaxDelete: byHand(row{
			VerbTerminatePiped: {No, "`confirmed` counts instead: more than 5 want `--yes`"},
			VerbResume:         {NotApplicable, "the guards of its run have said yes to the same plan, and it cannot grow"},
			VerbTask:           {NotApplicable, "an attempt has one sandbox"},
			VerbKept:           {NotApplicable, "each has a time of its own"},
			VerbDrill:          {NotApplicable, "it ends all that it has staged"},
		}, "`confirmed` counts instead: more than 5 want `--yes`"),
		RuleFraction: byHand(row{
			VerbTerminatePiped: {No, "it lists no fleet that a share could be taken of; `confirmed` counts instead"},
			VerbResume:         {NotApplicable, "the guards of its run have said yes to the same plan, and it cannot grow"},
			VerbTask:           {NotApplicable, "an attempt has one sandbox"},
			VerbKept:           {NotApplicable, "each has a time of its own"},
			VerbDrill:          {NotApplicable, "it ends all that it has staged"},
		}, "it lists no fleet that a share could be taken of; `confirmed` counts instead"),
		RuleClock:    clock(),
		RuleListed:   listed(),
		RuleRecheck:  recheck(),
		RuleReplaced: replaced(),
		RuleReadable: readable(),
	}
}

// byHand adds the columns of what a person has typed; without a reason the rule binds
// them as it binds what a pipe has named.
func byHand(r row, why string) row {
	c := Cell{No, why}
	if why == "" {
		c = r[VerbTerminatePiped]
	}
	r[VerbTerminate], r[VerbTerminateDelete] = c, c
	return r
}

func clock() row {
	return byHand(row{
		VerbTask:  {NotApplicable, "its limits count by the store's clock and by this process's own"},
		VerbKept:  {NotApplicable, "its time counts by the store's clock"},
		VerbDrill: {NotApplicable, "it runs on this machine alone, and no age decides"},
	}, "no age decides: a person has named it, and the read just before the end compares times of one clock")
}

func listed() row {
	return row{
		VerbTerminate:       {Yes, "for a bare word; `profile/id` costs one read and no listing"},
		VerbTerminatePiped:  {Yes, "for a bare word; `profile/id` costs one read and no listing"},
		VerbTerminateDelete: {Yes, "for a bare word; `profile/id` costs one read and no listing"},
		VerbTask:            {NotApplicable, "its id is known from its create; what a create without an answer has made is looked for until listings are whole"},
		VerbKept:            {NotApplicable, "its id is known from its create"},
		VerbDrill:           {No, "it ends what carries its label, and says that the listing was not whole"},
	}
}

func recheck() row {
	return row{
		VerbTask: {No, "nothing that a read could show would keep it, and a provider whose reads hang must not keep a stopped task at work"},
	}
}

func replaced() row {
	return row{
		VerbTask: {No, "the id is from the answer of its own create, and nothing is read"},
		VerbKept: {No, "the list keeps its id, not when it was made"},
	}
}

func readable() row {
	return row{
		VerbTerminateDelete: {Yes, "but what could not be read from the start, and was typed as `profile/id`, is deleted: nothing else removes it"},
		VerbTask:            {No, "nothing is read"},
	}
}
