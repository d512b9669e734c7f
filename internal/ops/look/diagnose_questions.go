package look

import (
	"time"

	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// InvestigationQuestion is a question that a step of the investigation answers.
type InvestigationQuestion struct {
	Step, ID, Text string // the step's id, the requirement, the question
}

// InvestigationQuestions are the questions of all steps, in their order.
func InvestigationQuestions() []InvestigationQuestion {
	var all []InvestigationQuestion
	questions := stepQuestions(triage.DefaultThresholds().CleanupEvery)
	for _, s := range triage.InvestigationSteps() {
		for _, q := range questions[s.ID] {
			all = append(all, InvestigationQuestion{s.ID, q.id, q.text})
		}
	}
	return all
}

// stepQuestions are the questions of each step; every is how often cleanup should run.
func stepQuestions(every time.Duration) map[string][]question {
	return map[string][]question{
		stepCount: {
			{"R19", "how many are active now?"},
			{"R20", "are any in provisioning?"},
			{"R21", "how long have the active ones run?"},
			{"R22", "is the count growing or stable?"},
		},
		stepStuck: {
			{"R26", "which are stuck?"},
			{"R27", "how many have run for too long?"},
			{"R28", "are any stuck in provisioning?"},
			{"R29", "are any without task and agent?"},
			{"R30", "do any time out again and again?"},
		},
		stepLogs: {
			{"R34", "when were they last active?"},
			{"R35", "do the logs show errors?"},
			{"R36", "do the logs repeat themselves?"},
			{"R37", "do the logs warn of resources?"},
		},
		stepResources: {
			{"R47", "is a processor at its limit?"},
			{"R48", "is a processor idle?"},
			{"R49", "does memory grow?"},
			{"R50", "are there no operations?"},
		},
		stepCleanup: {
			{"R53", "does cleanup run every " + sandbox.FormatDuration(every) + "?"},
			{"R54", "what do its runs do?"},
			{"R56", "do its runs fail?"},
			{"R57", "does it leave stuck sandboxes?"},
		},
	}
}

// stuckQuestionsOfOne are those of the step stuck about one sandbox.
func stuckQuestionsOfOne() []question {
	return []question{
		{"R26", "is it stuck?"},
		{"R27", "how long has it run?"},
		{"R29", "which task and agent does it belong to?"},
		{"R30", "does it time out again and again?"},
	}
}
