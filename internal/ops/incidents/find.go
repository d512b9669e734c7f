package incidents

import (
	"slices"

	"sbx/internal/fault"
	"sbx/internal/incident"
	"sbx/internal/ops"
)

// FindIncident reads the incident that a word means: by its id or the beginning of one; "" = the open
// one, and with newest else the newest one.
func FindIncident(env *ops.Env, word string, newest bool) (*incident.Incident, error) {
	_, i, err := findIncident(env, word, newest)
	return i, err
}

func findIncident(e *ops.Env, word string, newest bool) (folder incident.Folder, i *incident.Incident, err error) {
	if folder, err = e.IncidentFolder(); err != nil {
		return folder, nil, err
	}
	var id string
	if word != "" {
		id, err = folder.Find(word)
	} else if id, err = folder.Current(); id == "" && (newest || err != nil) {
		ids, listErr := folder.IDs()
		if err = listErr; len(ids) > 0 {
			id = ids[len(ids)-1]
		}
	}
	if err == nil && id == "" {
		err = noIncidentError(newest)
	}
	if err != nil {
		return folder, nil, err
	}
	i, err = folder.Read(id)
	if err == nil && word == "" && !newest && i.State == incident.StateEnded { // a kill left the file that names it
		err = noIncidentError(newest)
	}
	return folder, i, err
}

func noIncidentError(newest bool) error {
	if newest {
		return fault.New(fault.KindNotFound, "there is no incident yet").WithHint("`sbx incident start` begins one")
	}
	return fault.New(fault.KindNotFound, "no incident is open").WithHint("`sbx incident start` begins one; `sbx incident ls` lists those that were")
}

// Incidents reads all incidents, the newest first.
func Incidents(env *ops.Env) (all []*incident.Incident, errs []error, err error) {
	folder, err := env.IncidentFolder()
	if err != nil {
		return nil, nil, err
	}
	ids, err := folder.IDs()
	if err != nil {
		return nil, nil, err
	}
	for _, id := range slices.Backward(ids) {
		i, err := folder.Read(id)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		all = append(all, i)
	}
	return all, errs, nil
}
