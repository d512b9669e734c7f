package httpx

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	jsonv1 "github.com/go-json-experiment/json/v1"

	"sbx/internal/jsontext"
)

// Decode is json.Unmarshal for answers of an API: a field whose value does not fit is decoded as null, which
// every room reads as "not reported", and odd has one text for each. So one odd field hides neither its
// object nor the list around it. Not tolerated is what decides:
//
//   - the body itself, and a List, must be of the right type.
//   - a field with the tag `odd:"error"` has a meaning where it is null ("it still runs", "the last page").
//     Its misfit fails the decoding of the object; in a List it is a row that is refused.
//
// A value of a map or list of texts that is no text keeps its JSON as text, so that a label does not vanish.
func Decode(text []byte, out any) (odd []string, err error) {
	if jsonv2.Unmarshal(text, out, jsonv1.DefaultOptionsV1()) == nil { // nearly every answer, read once
		return nil, nil
	}
	reflect.ValueOf(out).Elem().SetZero()
	if err = json.Unmarshal(text, out); err == nil || !json.Valid(text) {
		return nil, err
	}
	f := &fitter{}
	fitted, misfit := f.fit(text, reflect.TypeOf(out).Elem(), "")
	switch {
	case misfit == nil:
	case misfit.path == "":
		return nil, err
	default:
		return nil, misfit
	}
	reflect.ValueOf(out).Elem().SetZero()
	return f.odd, json.Unmarshal(fitted, out)
}

// misfitError is a value that does not fit at all.
type misfitError struct {
	path    string
	err     error
	decides bool // it fails everything around it
}

// Error is the place and what is wrong there.
func (e *misfitError) Error() string {
	return strings.TrimSpace(e.path + " " + jsontext.Describe(e.err))
}

// fitter makes a JSON text fit a type.
type fitter struct{ odd []string }

// fit returns the text with each misfit inside it replaced, or the error of a text that does not fit as a whole.
func (f *fitter) fit(text json.RawMessage, t reflect.Type, path string) (json.RawMessage, *misfitError) {
	if bytes.Equal(bytes.TrimSpace(text), []byte("null")) {
		return text, nil
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch own := reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()); {
	case own:
	case t.Kind() == reflect.Struct, t.Kind() == reflect.Map:
		return f.fitMembers(text, t, path)
	case t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8:
		return f.fitElements(text, t.Elem(), path)
	}
	if err := json.Unmarshal(text, reflect.New(t).Interface()); err != nil {
		return nil, &misfitError{path: path, err: err}
	}
	return text, nil
}

// fitMembers fits the members of an object.
func (f *fitter) fitMembers(text json.RawMessage, t reflect.Type, path string) (json.RawMessage, *misfitError) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil {
		return nil, &misfitError{path: path, err: err}
	}
	isMap := t.Kind() == reflect.Map
	for key, value := range members {
		var member reflect.Type
		decides := false
		if isMap {
			member = t.Elem()
		} else if member, decides = fieldOf(t, key); member == nil {
			continue
		}
		fitted, misfit := f.fit(value, member, strings.TrimPrefix(path+"."+key, "."))
		if misfit != nil && (decides || misfit.decides) {
			misfit.decides = true
			return nil, misfit
		}
		members[key] = f.replace(fitted, value, misfit, isMap && member.Kind() == reflect.String)
	}
	return marshal(members), nil
}

func (f *fitter) fitElements(text json.RawMessage, t reflect.Type, path string) (json.RawMessage, *misfitError) {
	var elements []json.RawMessage
	if err := json.Unmarshal(text, &elements); err != nil {
		return nil, &misfitError{path: path, err: err}
	}
	for i, value := range elements {
		fitted, misfit := f.fit(value, t, path+"["+strconv.Itoa(i)+"]")
		if misfit != nil && misfit.decides {
			return nil, misfit
		}
		elements[i] = f.replace(fitted, value, misfit, t.Kind() == reflect.String)
	}
	return marshal(elements), nil
}

// replace is the fitted value, or what stands for one that does not fit: its JSON as a text, or null.
func (f *fitter) replace(fitted, value json.RawMessage, misfit *misfitError, keepText bool) json.RawMessage {
	if misfit == nil {
		return fitted
	}
	f.odd = append(f.odd, misfit.Error())
	if keepText {
		return marshal(string(value))
	}
	return json.RawMessage("null")
}

// marshal writes what has been read as JSON.
func marshal(v any) json.RawMessage {
	text, err := json.Marshal(v)
	if err != nil { // not possible: every value is valid JSON or a text
		return json.RawMessage("null")
	}
	return text
}

// isList says that a type is a List, which must be one.
func isList(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[oddRows]())
}

// fieldOf is the type of the field that json.Unmarshal would set, and whether it decides.
func fieldOf(t reflect.Type, key string) (found reflect.Type, decides bool) {
	for field := range t.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == key || found == nil && field.IsExported() && strings.EqualFold(name, key) {
			found, decides = field.Type, field.Tag.Get("odd") == "error" || isList(field.Type)
		}
	}
	return found, decides
}

// oddRows is a List: what was odd in its rows.
type oddRows interface{ oddFields() []string }

// oddIn are the odd fields of the rows of a decoded answer: a List, or an object with one.
func oddIn(out any) []string {
	if l, ok := out.(oddRows); ok {
		return l.oddFields()
	}
	v := reflect.ValueOf(out).Elem()
	if v.Kind() != reflect.Struct {
		return nil
	}
	var odd []string
	for i := range v.NumField() {
		if !v.Type().Field(i).IsExported() {
			continue
		}
		if l, ok := reflect.TypeAssert[oddRows](v.Field(i).Addr()); ok {
			odd = append(odd, l.oddFields()...)
		}
	}
	return odd
}

// RefusedRowsError are rows of a list that cannot be used, since they cannot be identified or since a field is
// invalid that decides. The other rows are given beside it. It is inside a fault of kind unavailable.
type RefusedRowsError struct {
	why   []string
	total int
}

// Error names the rows; of many the first ones.
func (r *RefusedRowsError) Error() string {
	const most = 3
	text := strings.Join(r.why[:min(len(r.why), most)], "; ")
	if more := len(r.why) - most; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return fmt.Sprintf("%s (%d of %d rows cannot be used)", text, len(r.why), r.total)
}

// OnlyRefused says that the error of a list is that of refused rows: the others can be used.
func OnlyRefused(err error) bool {
	_, is := errors.AsType[*RefusedRowsError](err)
	return is
}
