package config

import (
	"os"
	"path/filepath"

	"sbx/internal/hostfile"
)

// Files and folders of sbx are the operator's alone: they may hold secrets.
const (
	modeFile   = 0o600
	modeFolder = 0o700
)

// writeFile is hostfile.Replace in a folder that may have to be made.
func writeFile(path string, content []byte, mode os.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), modeFolder); err != nil {
		return err
	}
	return hostfile.Replace(path, content, mode)
}

// createFile is hostfile.Create in a folder that may have to be made.
func createFile(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), modeFolder); err != nil {
		return err
	}
	return hostfile.Create(path, content, modeFile)
}
