package config

import "errors"

const keyMouse = "mouse"

// The words of `mouse:`.
const (
	mouseOn  = "on"
	mouseOff = "off"
)

// mouseWord checks the word.
func mouseWord(text string) error {
	if text != mouseOn && text != mouseOff {
		return errors.New("must be " + mouseOn + " or " + mouseOff)
	}
	return nil
}
