package jsontext

import (
	"bytes"
	"errors"
	"io"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// Member is a member of an object.
type Member struct {
	Key   string
	Value []byte // JSON, a part of the text of the object
}

// errNoObject is a text that is no object, or more than one.
var errNoObject = errors.New("it is not one object")

// memberReader is what Members reads with.
type memberReader struct {
	text    bytes.Buffer
	decoder jsontext.Decoder
}

var memberReaders = sync.Pool{New: func() any { return new(memberReader) }} //nolint:gochecknoglobals // memory that is used again

// Members appends the members of an object in their order, also those that come twice. Nothing is copied
// but keys. An error is that of the JSON, or says that the text is not one object.
func Members(to []Member, text []byte) ([]Member, error) {
	r, _ := memberReaders.Get().(*memberReader)
	defer memberReaders.Put(r)
	r.text = *bytes.NewBuffer(text)
	d := &r.decoder
	d.Reset(&r.text, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if first, err := d.ReadToken(); err != nil || first.Kind() != '{' {
		return to, errors.Join(errNoObject, err)
	}
	for d.PeekKind() != '}' {
		key, err := d.ReadToken()
		if err != nil {
			return to, err
		}
		member := Member{Key: key.String()}
		value, err := d.ReadValue()
		if err != nil {
			return to, err
		}
		end := int(d.InputOffset())
		member.Value = text[end-len(value) : end : end]
		to = append(to, member)
	}
	if _, err := d.ReadToken(); err != nil {
		return to, err
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return to, errNoObject
	}
	return to, nil
}
