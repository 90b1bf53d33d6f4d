package process

import (
	"io/fs"
	"path/filepath"
)

// Running is one recorded process that still runs.
type Running struct {
	Name string
	Pid  int
	Dir  string // the Spec's
}

// List names the recorded processes below dir that still run, whoever their
// parent is, by folder and name. It changes nothing: a record that cannot be
// read may be one that is being written.
func List(dir string) []Running {
	var out []Running
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Base(filepath.Dir(path)) != recordDir {
			return nil
		}
		if child, _, err := readRecord(path); err == nil && child.alive() {
			out = append(out, Running{Name: filepath.Base(path), Pid: child.pid, Dir: filepath.Dir(filepath.Dir(path))})
		}
		return nil
	})
	return out
}
