package httpx

// Redactor exports the redaction.
func Redactor(secrets []string) func(string) string { return newRedactor(secrets) }

// Line exports flatten.
func Line(text string, most int) string { return flatten(text, most) }
