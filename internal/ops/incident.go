package ops

import (
	"fmt"
	"time"

	"sbx/internal/fault"
	"sbx/internal/incident"
	"sbx/internal/sandbox"
)

// IncidentFolder is where incidents are; an error where the state directory cannot be used.
func (e *Env) IncidentFolder() (incident.Folder, error) {
	c, err := e.Config()
	if err != nil {
		return incident.Folder{}, err
	}
	if _, err := c.State(); err != nil {
		return incident.Folder{}, err
	}
	return e.Incidents()
}

// CheckIncident reports an incident that is open, which somebody may have forgotten.
func (e *Env) CheckIncident() []Check {
	const name = "incident"
	folder, err := e.IncidentFolder()
	if err != nil {
		return nil // the check of the state directory says it
	}
	id, err := folder.Current()
	if err == nil && id == "" {
		return nil
	}
	var i *incident.Incident
	if err == nil {
		i, err = folder.Read(id)
	}
	switch {
	case err != nil:
		return []Check{ToolCheck(name, sandbox.Unknown, err.Error(), fault.HintOf(err)).AsWarning()}
	case i.Problem != "":
		return []Check{ToolCheck(name, sandbox.False, "the record of "+id+" cannot be written: "+i.Problem, "`sbx incident close` leaves it as it is").AsWarning()}
	}
	message := fmt.Sprintf("%s is open since %s", id, i.StartedAt.UTC().Format(time.RFC3339))
	return []Check{ToolCheck(name, sandbox.True, message, "`sbx incident close` ends it").AsNote()}
}
