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

// resolveMouse reads whether the dashboard takes the mouse.
func (l *loader) resolveMouse() {
	l.layers.byDefault(keyMouse, entry{text: mouseOn, origin: originDefault})
	e, _ := l.layers.lookup(keyMouse)
	l.config.Mouse = e.text == mouseOn
}
