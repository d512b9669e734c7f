package safety

import "slices"

// Verb is a column of the table: one way in which sandboxes end.
type Verb string

// All verbs.
const (
	VerbTerminate       Verb = "terminate REF"
	VerbTerminatePiped  Verb = "terminate -"
	VerbTerminateDelete Verb = "terminate --delete"
	VerbCleanup         Verb = "cleanup"
	VerbApply           Verb = "cleanup --apply"
	VerbResume          Verb = "cleanup --resume"
	VerbReconcile       Verb = "reconcile --fix"
	VerbTask            Verb = "task" // run, stop, sweep: the sandbox of an attempt
	VerbKept            Verb = "kept" // a kept sandbox, when its time is over or its task is stopped
	VerbDrill           Verb = "drill"
)

// Verbs lists them in the order of the table.
func Verbs() []Verb {
	return []Verb{
		VerbTerminate, VerbTerminatePiped, VerbTerminateDelete, VerbCleanup, VerbApply, VerbResume, VerbReconcile, VerbTask, VerbKept, VerbDrill,
	}
}

// Rule is a row of the table: one reason to keep a sandbox.
type Rule string

// All rules.
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

// Describe is the rule in one sentence.
func (r Rule) Describe() string {
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

// Kind is whether a rule binds a verb.
type Kind string

// All kinds.
const (
	Yes           Kind = "yes"
	No            Kind = "no"
	NotApplicable Kind = "n/a"
)

// Cell is one field of the table. Any kind but Yes has a reason; a Yes may have a remark.
type Cell struct {
	Kind Kind
	Why  string
}

// Binds reports whether the rule keeps a sandbox from this verb.
func (c Cell) Binds() bool { return c.Kind == Yes }

// Binding is whether a rule binds a verb. What the table does not contain binds.
func Binding(v Verb, r Rule) Cell {
	for _, e := range append(sandboxExceptions(), runExceptions()...) {
		if e.rule == r && slices.Contains(e.verbs, v) {
			return Cell{e.kind, e.why}
		}
	}
	return Cell{Kind: Yes}
}

// exception is one field of the table, or several alike, that is not a plain Yes.
type exception struct {
	rule  Rule
	verbs []Verb
	kind  Kind
	why   string
}

func onVerbs(verbs ...Verb) []Verb { return verbs }

func typedVerbs() []Verb { return []Verb{VerbTerminate, VerbTerminateDelete} }

func namedVerbs() []Verb { return append(typedVerbs(), VerbTerminatePiped) }

func sandboxExceptions() []exception {
	return []exception{
		{RuleProtected, onVerbs(VerbTask), No, "the task has made it and is not over before it is gone; `--keep-alive` is how a task keeps its sandbox"},
		{RuleProtected, onVerbs(VerbDrill), No, "it ends what it has staged itself, by a label of its own, and its load must not stay"},

		{RuleLeased, onVerbs(VerbTask), NotApplicable, "the lease is its own: a fence in the store keeps any other process out"},
		{RuleLeased, onVerbs(VerbDrill), NotApplicable, "no task is given a sandbox of a drill"},

		{RuleKept, typedVerbs(), No, "a person who types its name is how it ends early"},
		{RuleKept, onVerbs(VerbDrill), NotApplicable, "nothing keeps a sandbox of a drill"},

		{RuleOwned, namedVerbs(), No, "who names a sandbox decides"},
		{RuleOwned, onVerbs(VerbTask), No, "the task has made it"},
		{RuleOwned, onVerbs(VerbKept), No, "a task of this store has made it"},
		{RuleOwned, onVerbs(VerbDrill), No, "the label of the drill says whose it is"},

		{RuleAtWork, namedVerbs(), No, "who names a sandbox decides; `ls --stuck` has looked"},
		{RuleAtWork, onVerbs(VerbTask), No, "a limit or a stop ends it while it works"},
		{RuleAtWork, onVerbs(VerbKept), No, "the time for which it was kept is over"},
		{RuleAtWork, onVerbs(VerbDrill), No, "the drill knows what it has staged"},

		{RuleListed, namedVerbs(), Yes, "for a bare word; `profile/id` costs one read and no listing"},
		{RuleListed, onVerbs(VerbResume), NotApplicable, "it lists nothing: what its run could not list whole is not among what is left"},
		{RuleListed, onVerbs(VerbTask), NotApplicable, "its id is known from its create; what a create without an answer has made is looked for until listings are whole"},
		{RuleListed, onVerbs(VerbKept), NotApplicable, "its id is known from its create"},
		{RuleListed, onVerbs(VerbDrill), No, "it ends what carries its label, and says that the listing was not whole"},

		{RuleRecheck, onVerbs(VerbTask), No, "nothing that a read could show would keep it, and a provider whose reads hang must not keep a stopped task at work"},

		{RuleReplaced, onVerbs(VerbTask), No, "the id is from the answer of its own create, and nothing is read"},
		{RuleReplaced, onVerbs(VerbKept), No, "the list keeps its id, not when it was made"},

		{RuleReadable, onVerbs(VerbTerminateDelete), Yes, "but what could not be read from the start, and was typed as `profile/id`, is deleted: nothing else removes it"},
		{RuleReadable, onVerbs(VerbTask), No, "nothing is read"},
	}
}

// runExceptions are those of the rules about a whole run.
func runExceptions() []exception {
	const (
		counted = "`confirmed` counts instead: more than 5 want `--yes`"
		allowed = "the guards of its run have said yes to the same plan, and it cannot grow"
	)
	return []exception{
		{RuleConfirmed, namedVerbs(), Yes, "more than 5"},
		{RuleConfirmed, onVerbs(VerbTask), NotApplicable, "`run` and `stop` are the order"},
		{RuleConfirmed, onVerbs(VerbKept), NotApplicable, "`--keep-alive` and `stop` are the order"},
		{RuleConfirmed, onVerbs(VerbDrill), NotApplicable, "`drill` is the order"},

		{RuleProduction, typedVerbs(), Yes, "one, typed as `profile/id`, is named"},
		{RuleProduction, onVerbs(VerbResume), NotApplicable, allowed},
		{RuleProduction, onVerbs(VerbTask), No, "launching there needed its name, and it ends what it has made"},
		{RuleProduction, onVerbs(VerbKept), No, "launching there needed its name, and it ends what a task has made"},
		{RuleProduction, onVerbs(VerbDrill), NotApplicable, "it runs on `local` alone"},

		{RuleMaxDelete, namedVerbs(), No, counted},
		{RuleMaxDelete, onVerbs(VerbResume), NotApplicable, allowed},
		{RuleMaxDelete, onVerbs(VerbTask), NotApplicable, "an attempt has one sandbox"},
		{RuleMaxDelete, onVerbs(VerbKept), NotApplicable, "each has a time of its own"},
		{RuleMaxDelete, onVerbs(VerbDrill), NotApplicable, "it ends all that it has staged"},

		{RuleFraction, namedVerbs(), No, counted + ", and no fleet is listed that a share could be taken of"},
		{RuleFraction, onVerbs(VerbResume), NotApplicable, allowed},
		{RuleFraction, onVerbs(VerbTask), NotApplicable, "an attempt has one sandbox"},
		{RuleFraction, onVerbs(VerbKept), NotApplicable, "each has a time of its own"},
		{RuleFraction, onVerbs(VerbDrill), NotApplicable, "it ends all that it has staged"},

		{RuleClock, typedVerbs(), No, "no age decides: a person has named it, and the read just before the end compares times of one clock"},
		{RuleClock, onVerbs(VerbTask), NotApplicable, "its limits count by the store's clock and by this process's own"},
		{RuleClock, onVerbs(VerbKept), NotApplicable, "its time counts by the store's clock"},
		{RuleClock, onVerbs(VerbDrill), NotApplicable, "it runs on this machine alone, and no age decides"},
	}
}
