package jobfile

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

// Reader is where local files and variables come from.
type Reader struct {
	File     func(path string) ([]byte, error)
	Variable func(name string) (string, bool)
}

// Load reads a job file and the local files that it names, from the folder that
// it is in. name is what problems call it.
func (r Reader) Load(path, name string) (Job, Lines, error) {
	data, err := r.File(path)
	if err != nil {
		return Job{}, nil, err
	}
	job, lines, err := Decode(name, data)
	problems := []error{err}
	at := func(key string) string { return fmt.Sprintf("%s:%d: %s", name, lines.Of(key), key) }
	near := func(file string) string {
		if filepath.IsAbs(file) {
			return file
		}
		return filepath.Join(filepath.Dir(path), file)
	}
	env := map[string]string{}
	for i, file := range job.EnvFiles {
		one, err := r.EnvFile(near(file))
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", at(fmt.Sprintf("env_files.%d", i)), err))
		}
		maps.Copy(env, one)
	}
	maps.Copy(env, job.Env)
	job.Env, job.EnvFiles = some(env), nil
	for _, to := range slices.Sorted(maps.Keys(job.LocalFiles)) {
		text, err := r.SmallFile(near(job.LocalFiles[to]))
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", at("local_files."+to), err))
			continue
		}
		if _, twice := job.Files[to]; twice {
			problems = append(problems, fmt.Errorf("%s: files has it as well", at("local_files."+to)))
		}
		if job.Files == nil {
			job.Files = map[string]string{}
		}
		job.Files[to] = text
	}
	job.LocalFiles = nil
	return job, lines, errors.Join(problems...)
}

// SmallFile reads a file for a job's containers. They are kept as text.
func (r Reader) SmallFile(path string) (string, error) {
	data, err := r.File(path)
	if err != nil {
		return "", err
	}
	if !utf8.Valid(data) {
		return "", fmt.Errorf("%s is no text in UTF-8: put it into the image or a bucket", path)
	}
	return string(data), nil
}

// EnvFile reads a file in Docker's format: a line is NAME=VALUE, taken as it is,
// without quotes or escapes, or NAME, for the value it has here if it has one;
// lines that are empty or begin with # are left out.
func (r Reader) EnvFile(path string) (map[string]string, error) {
	data, err := r.File(path)
	if err != nil {
		return nil, err
	}
	if !utf8.Valid(data) {
		return nil, fmt.Errorf("%s is no text in UTF-8", path)
	}
	env := map[string]string{}
	var problems []error
	for i, line := range strings.Split(strings.TrimPrefix(string(data), "\ufeff"), "\n") {
		line = strings.TrimLeft(strings.TrimSuffix(line, "\r"), " \t")
		if line == "" || line[0] == '#' {
			continue
		}
		name, value, given := strings.Cut(line, "=")
		switch {
		case name == "" || strings.ContainsAny(name, " \t"):
			problems = append(problems, fmt.Errorf("%s, line %d: %q; want NAME=VALUE, with no space in the name", path, i+1, line))
		case given:
			env[name] = value
		default:
			if value, here := r.Variable(name); here {
				env[name] = value
			}
		}
	}
	return env, errors.Join(problems...)
}
