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
			{"active", "how many are active now?"},
			{"provisioning", "are any in provisioning?"},
			{"ages", "how long have the active ones run?"},
			{"trend", "is the count growing or stable?"},
		},
		stepStuck: {
			{"stuck", "which are stuck?"},
			{"over_age", "how many have run for too long?"},
			{"provisioning_long", "are any stuck in provisioning?"},
			{"no_task", "are any without task and agent?"},
			{"repeated_timeouts", "do any time out again and again?"},
		},
		stepLogs: {
			{"last_activity", "when were they last active?"},
			{"log_errors", "do the logs show errors?"},
			{"log_repeats", "do the logs repeat themselves?"},
			{"log_warnings", "do the logs warn of resources?"},
		},
		stepResources: {
			{"cpu_at_limit", "is a processor at its limit?"},
			{"cpu_idle", "is a processor idle?"},
			{"memory_grows", "does memory grow?"},
			{"no_operations", "are there no operations?"},
		},
		stepCleanup: {
			{"cleanup_on_time", "does cleanup run every " + sandbox.FormatDuration(every) + "?"},
			{"cleanup_results", "what do its runs do?"},
			{"cleanup_failures", "do its runs fail?"},
			{"cleanup_leaves", "does it leave stuck sandboxes?"},
		},
	}
}

// stuckQuestionsOfOne are the questions of the step stuck about one sandbox.
func stuckQuestionsOfOne() []question {
	return []question{
		{"stuck", "is it stuck?"},
		{"over_age", "how long has it run?"},
		{"no_task", "which task and agent does it belong to?"},
		{"repeated_timeouts", "does it time out again and again?"},
	}
}
