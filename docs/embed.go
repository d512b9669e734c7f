// Package docs holds the pages that `sbx help` prints: the glossary and, below schemas, the JSON
// documents with their schemas. No other page and no code enters here.
package docs

import "embed"

// Files are GLOSSARY.md, REQUIREMENTS.md, schemas/README.md and schemas/sbx.NAME.v1.json for each document.
//
//go:embed GLOSSARY.md REQUIREMENTS.md schemas
var Files embed.FS
