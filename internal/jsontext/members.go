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

// Texts that are something else than one object or one list.
var (
	errNoObject = errors.New("it is not one object")
	errNoList   = errors.New("it is not one list")
	errMore     = errors.New("there is more behind its end")
)

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
	d := r.read(text)
	if first, err := d.ReadToken(); err != nil || first.Kind() != '{' {
		return to, errors.Join(errNoObject, err)
	}
	for d.PeekKind() != '}' {
		key, err := d.ReadToken()
		if err != nil {
			return to, err
		}
		member := Member{Key: key.String()}
		if member.Value, err = r.value(text); err != nil {
			return to, err
		}
		to = append(to, member)
	}
	return to, r.end()
}

// AppendText appends a text as JSON. What is not UTF-8 in it becomes U+FFFD.
func AppendText(to []byte, text string) []byte {
	to, _ = jsontext.AppendQuote(to, text)
	return to
}

// Elements appends the values of a list. Nothing is copied. An error is that of the JSON, or says that the
// text is not one list.
func Elements(to [][]byte, text []byte) ([][]byte, error) {
	r, _ := memberReaders.Get().(*memberReader)
	defer memberReaders.Put(r)
	d := r.read(text)
	if first, err := d.ReadToken(); err != nil || first.Kind() != '[' {
		return to, errors.Join(errNoList, err)
	}
	for d.PeekKind() != ']' {
		value, err := r.value(text)
		if err != nil {
			return to, err
		}
		to = append(to, value)
	}
	return to, r.end()
}

// read begins to read a text.
func (r *memberReader) read(text []byte) *jsontext.Decoder {
	r.text = *bytes.NewBuffer(text)
	r.decoder.Reset(&r.text, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	return &r.decoder
}

// value reads a value, and gives it as a part of the text.
func (r *memberReader) value(text []byte) ([]byte, error) {
	value, err := r.decoder.ReadValue()
	if err != nil {
		return nil, err
	}
	end := int(r.decoder.InputOffset())
	return text[end-len(value) : end : end], nil
}

// end reads the end of an object or a list, behind which there is nothing else.
func (r *memberReader) end() error {
	if _, err := r.decoder.ReadToken(); err != nil {
		return err
	}
	if _, err := r.decoder.ReadToken(); !errors.Is(err, io.EOF) {
		return errMore
	}
	return nil
}
