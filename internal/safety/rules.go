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
	RuleAtWork     Rule = "active"
	RuleConfirmed  Rule = "confirmed"
	RuleProduction Rule = "production"
	RuleMaxDelete  Rule = "max_delete"
	RuleFraction   Rule = "max_fraction"
	RuleClock      Rule = "clock"
	RuleListed     Rule = "complete listing"
	RuleRecheck    Rule = "recheck"
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
		RuleLeased:     "A running task uses it.",
		RuleKept:       "sbx keeps it on purpose: its task has kept it.",
		RuleOwned:      "By `owned` of its profile it is not yours.",
		RuleAtWork:     "It is active, or no source can tell.",
		RuleConfirmed:  "The run was not confirmed, by `--yes` or at a terminal.",
		RuleProduction: "Its profile is production and was not named: without `--production NAME` no sandbox of it is terminated.",
		RuleMaxDelete:  "More would be terminated than `--max-delete`.",
		RuleFraction:   "More than 5, and more than `--max-fraction` of the profile's sandboxes, would be terminated.",
		RuleClock:      "The provider's clock and this machine's are more than 2 minutes apart, so that no age can be trusted.",
		RuleListed:     "The listing of its provider is incomplete.",
		RuleRecheck:    "A read just before the request shows that it has changed since it was selected.",
		RuleReplaced:   "That read shows another sandbox under its id.",
		RuleReadable:   "That read finds it, but its record cannot be read.",
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
		{RuleProtected, onVerbs(VerbTask), No, "the task created it and ends only when it is verified ended; `--keep-alive` is how a task keeps its sandbox"},
		{RuleProtected, onVerbs(VerbDrill), No, "it terminates what it created itself, found by its own label, and its load must not remain"},

		{RuleLeased, onVerbs(VerbTask), NotApplicable, "the lease is its own: a fencing token in the store excludes every other process"},
		{RuleLeased, onVerbs(VerbDrill), NotApplicable, "no task gets a sandbox of a drill"},

		{RuleKept, typedVerbs(), No, "to type its name is the way to terminate it early"},
		{RuleKept, onVerbs(VerbDrill), NotApplicable, "nothing keeps a sandbox of a drill"},

		{RuleOwned, namedVerbs(), No, "to name a sandbox is the decision"},
		{RuleOwned, onVerbs(VerbTask), No, "the task created it"},
		{RuleOwned, onVerbs(VerbKept), No, "a task of this store created it"},
		{RuleOwned, onVerbs(VerbDrill), No, "the label of the drill marks it as its own"},

		{RuleAtWork, namedVerbs(), No, "to name a sandbox is the decision; `ls --stuck` has checked activity"},
		{RuleAtWork, onVerbs(VerbTask), No, "a limit or a stop terminates it while it is active"},
		{RuleAtWork, onVerbs(VerbKept), No, "its keep time has ended"},
		{RuleAtWork, onVerbs(VerbDrill), No, "the drill knows what it created"},

		{RuleListed, namedVerbs(), Yes, "for a bare name; `profile/id` needs one read and no listing"},
		{RuleListed, onVerbs(VerbResume), NotApplicable, "it lists nothing: a profile that its run could not list completely has no sandbox left to resume"},
		{
			RuleListed, onVerbs(VerbTask), NotApplicable,
			"its id is known from its create; a sandbox of an unanswered create is searched for until the listings are complete",
		},
		{RuleListed, onVerbs(VerbKept), NotApplicable, "its id is known from its create"},
		{RuleListed, onVerbs(VerbDrill), No, "it terminates what has its label, and reports that the listing was incomplete"},

		{RuleRecheck, onVerbs(VerbTask), No, "no result of a read would keep it, and a provider whose reads hang must not keep a stopped task running"},

		{RuleReplaced, onVerbs(VerbTask), No, "the id is from the answer of its own create, or has the mark of it, and nothing is read"},
		{RuleReplaced, onVerbs(VerbKept), No, "the list of kept sandboxes has its id, not its creation time"},

		{
			RuleReadable, onVerbs(VerbTerminateDelete), Yes,
			"but one that could not be read from the start, and was typed as `profile/id`, is deleted: nothing else removes it",
		},
		{RuleReadable, onVerbs(VerbTask), No, "nothing is read"},
	}
}

// runExceptions are the exceptions of the rules about a whole run.
func runExceptions() []exception {
	const (
		counted = "`confirmed` applies instead: more than 5 need `--yes`"
		allowed = "the limits of its run have allowed the same plan, which cannot grow"
	)
	return []exception{
		{RuleConfirmed, namedVerbs(), Yes, "more than 5"},
		{RuleConfirmed, onVerbs(VerbTask), NotApplicable, "`run` and `stop` are the confirmation"},
		{RuleConfirmed, onVerbs(VerbKept), NotApplicable, "`--keep-alive` and `stop` are the confirmation"},
		{RuleConfirmed, onVerbs(VerbDrill), NotApplicable, "`drill` is the confirmation"},

		{RuleProduction, typedVerbs(), Yes, "one that was typed as `profile/id` is named"},
		{RuleProduction, onVerbs(VerbResume), NotApplicable, allowed},
		{RuleProduction, onVerbs(VerbTask), No, "to launch there needed its name, and it terminates what it created"},
		{RuleProduction, onVerbs(VerbKept), No, "to launch there needed its name, and it terminates what a task created"},
		{RuleProduction, onVerbs(VerbDrill), NotApplicable, "it runs only on `local`"},

		{RuleMaxDelete, namedVerbs(), No, counted},
		{RuleMaxDelete, onVerbs(VerbResume), NotApplicable, allowed},
		{RuleMaxDelete, onVerbs(VerbTask), NotApplicable, "an attempt has one sandbox, and what a repeated create made beside it"},
		{RuleMaxDelete, onVerbs(VerbKept), NotApplicable, "each has its own time"},
		{RuleMaxDelete, onVerbs(VerbDrill), NotApplicable, "it terminates all that it created"},

		{RuleFraction, namedVerbs(), No, counted + ", and nothing is listed that a fraction could be taken of"},
		{RuleFraction, onVerbs(VerbResume), NotApplicable, allowed},
		{RuleFraction, onVerbs(VerbTask), NotApplicable, "an attempt has one sandbox, and what a repeated create made beside it"},
		{RuleFraction, onVerbs(VerbKept), NotApplicable, "each has its own time"},
		{RuleFraction, onVerbs(VerbDrill), NotApplicable, "it terminates all that it created"},

		{RuleClock, typedVerbs(), No, "age is not the reason: a person named it, and the read just before the request compares times of one clock"},
		{RuleClock, onVerbs(VerbTask), NotApplicable, "its limits use the store's clock and this process's own"},
		{RuleClock, onVerbs(VerbKept), NotApplicable, "its time limit uses the store's clock"},
		{RuleClock, onVerbs(VerbDrill), NotApplicable, "it runs only on this machine, and age is not the reason"},
	}
}
