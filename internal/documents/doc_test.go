// Package documents makes the JSON Schemas and their page below docs/schemas from the types that
// the documents of sbx are, whose comments explain each key. Package documentstest holds the
// documents of other tests against the schemas. No code that runs enters here.
//
// The generator is our own: invopop/jsonschema knows neither null beside a type nor the constants of a Go type as a
// closed list nor keys beside the items, and the page of keys would still need the reader of comments.
package documents

import (
	"reflect"

	"sbx/internal/views"
)

// document is one documented form.
type document struct {
	verb string // the command that prints it, "" for none
	form reflect.Type
}

func form[T any]() reflect.Type { return reflect.TypeFor[T]() }

// documented are all documents by their schema names without sbx. and /v1.
func documented() map[string]document {
	return map[string]document{
		"ls":              {"ls", form[listOf[views.SandboxItem]]()},
		"inspect":         {"inspect", form[itemOf[views.InspectionItem]]()},
		"stats":           {"stats", form[listOf[views.StatsItem]]()},
		"dashboard":       {"dashboard --once", form[freeFrame]()},
		"events":          {"events", form[listOf[views.AgentEventItem]]()},
		"events.stats":    {"events --stats", form[itemOf[views.EventStatsItem]]()},
		"events.compare":  {"events compare", form[itemOf[views.EventsCompareItem]]()},
		"logs":            {"logs", form[listOf[views.LogItem]]()},
		"top":             {"top", form[listOf[views.UsageItem]]()},
		"create":          {"create", form[itemOf[views.CreatedItem]]()},
		"run":             {"run", form[runFrame]()},
		"resume":          {"resume", form[itemOf[views.TaskItem]]()},
		"stop":            {"stop", form[listOf[views.StopItem]]()},
		"tasks":           {"tasks", form[listOf[views.TaskListItem]]()},
		"tasks.show":      {"tasks show", form[itemOf[views.TaskItem]]()},
		"report":          {"report", form[listOf[views.FigureItem]]()},
		"diagnose":        {"diagnose", form[itemOf[views.InvestigationItem]]()},
		"verify":          {"verify", form[itemOf[views.VerificationItem]]()},
		"audit":           {"audit", form[listOf[views.ActItem]]()},
		"wait":            {"wait", form[itemOf[views.SandboxItem]]()},
		"keep":            {"keep", form[listOf[views.KeepItem]]()},
		"extend":          {"extend", form[plannedListOf[views.ExtendItem]]()},
		"terminate":       {"terminate", form[plannedListOf[views.EndingItem]]()},
		"cleanup":         {"cleanup", form[plannedListOf[views.EndingItem]]()},
		"cleanup.runs":    {"cleanup runs", form[listOf[views.RunItem]]()},
		"cleanup.status":  {"cleanup status", form[itemOf[views.CleanupStatusItem]]()},
		"cleanup.show":    {"cleanup show", form[listOf[views.RunOutcomeItem]]()},
		"reconcile":       {"reconcile", form[listOf[either[views.ReconcileItem, views.ReconcileDoneItem]]]()},
		"drill":           {"drill", form[freeFrame]()},
		"doctor":          {"doctor", form[listOf[views.CheckItem]]()},
		"providers":       {"providers", form[listOf[views.ProviderItem]]()},
		"incident.note":   {"incident note", form[itemOf[views.NoteItem]]()},
		"incident.report": {"incident report", form[itemOf[views.IncidentReportItem]]()},
		"runbook.ls":      {"runbook ls", form[listOf[views.RunbookListItem]]()},
		"runbook.show":    {"runbook show", form[itemOf[views.RunbookItem]]()},
		"runbook.run":     {"runbook run", form[listOf[views.RunStepItem]]()},
		"runbook.runs":    {"runbook runs", form[listOf[views.RunbookRunItem]]()},
		"runbook.status":  {"runbook status", form[listOf[views.RunStepItem]]()},
		"runbook.lint":    {"runbook lint", form[listOf[views.LintItem]]()},
		"runbook.new":     {"runbook new", form[itemOf[views.DraftItem]]()},
		"runbook.rules":   {"runbook rules", form[listOf[views.PrometheusItem]]()},
		"cron.print":      {"cron print", form[listOf[views.CronItem]]()},
		"cron.check":      {"cron check", form[listOf[views.CronCheckItem]]()},
		"config.explain":  {"config explain", form[listOf[views.SettingItem]]()},
		"config.path":     {"config path", form[listOf[views.FileItem]]()},
		"config.init":     {"config init", form[itemOf[views.WrittenItem]]()},
		"config.suggest":  {"config suggest", form[listOf[views.SuggestedLimitsItem]]()},
		"config.own":      {"config own", form[itemOf[views.OwnChangeItem]]()},
		"config.import":   {"config import", form[itemOf[views.ImportItem]]()},
		"version":         {"version", form[itemOf[views.VersionItem]]()},
		"error":           {"", form[usageError]()},
	}
}

// besideItems are the keys that some documents have beside their items.
func besideItems() map[string]reflect.Type {
	return map[string]reflect.Type{
		"ls":             form[views.ListKeys](),
		"stats":          form[views.StatsKeys](),
		"extend":         form[views.TerminateKeys](),
		"terminate":      form[views.TerminateKeys](),
		"cleanup":        form[views.CleanupKeys](),
		"reconcile":      form[views.ReconcileKeys](),
		"events":         form[views.EventsKeys](),
		"logs":           form[views.LogKeys](),
		"run":            form[views.RunKeys](),
		"report":         form[views.ReportKeys](),
		"cleanup.show":   form[views.RunShownKeys](),
		"dashboard":      form[views.DashboardKeys](),
		"drill":          form[views.DrillKeys](),
		"runbook.run":    form[views.RunbookRunKeys](),
		"runbook.status": form[views.RunbookRunKeys](),
	}
}
