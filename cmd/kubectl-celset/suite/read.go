// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"go.yaml.in/yaml/v3"
	kjson "sigs.k8s.io/json"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/celset/celset/apis/nearest"
	"github.com/celset/celset/cmd/kubectl-celset/output"
)

const (
	// maxFile is the maximum size of a file with test cases, in bytes.
	maxFile = 1 << 20
	// maxCases is the maximum number of cases of a file.
	maxCases = 1000
	// maxMistakes is the maximum number of reported mistakes of a file.
	maxMistakes = 20
)

// source is a file with test cases.
type source struct {
	path    string
	content []byte
	// root is the top-level mapping. The option Update changes its nodes.
	root *yaml.Node
	test ExpressionTest
}

// Mistake is a mistake in a file with test cases.
type Mistake struct {
	// Line is the line of the file, counted from 1, or 0 if it is unknown.
	Line int `json:"line,omitempty"`
	// Field is the path of the field, for example "cases[2].expect.devices", or "" for the whole file.
	Field string `json:"field,omitempty"`
	// Message says what is wrong and what to do.
	Message string `json:"message"`
}

// find returns the files with test cases that the paths name, in order. In a directory, it takes the YAML files of kind
// ExpressionTest.
func find(paths []string, recursive bool) ([]string, error) {
	var files []string
	var wrong []error
	for _, path := range paths {
		info, err := os.Stat(path)
		switch {
		case err != nil:
			wrong = append(wrong, err)
			continue
		case !info.IsDir():
			files = append(files, path)
			continue
		}
		before := len(files)
		err = filepath.WalkDir(path, func(name string, entry os.DirEntry, err error) error {
			switch extension := filepath.Ext(name); {
			case err != nil:
				return err
			case entry.IsDir() && name != path && !recursive:
				return filepath.SkipDir
			case isFile(name, entry) && (extension == ".yaml" || extension == ".yml") && hasKind(name):
				files = append(files, name)
			}
			return nil
		})
		if err == nil && len(files) == before {
			err = fmt.Errorf("%s: no YAML file has the kind %s: name a file or another directory, or add --recursive", path, Kind)
		}
		wrong = append(wrong, err)
	}
	return files, errors.Join(wrong...)
}

// isFile reports whether the entry is a file, or a symbolic link to a file. The files of a mounted ConfigMap are links.
func isFile(name string, entry os.DirEntry) bool {
	if entry.Type() != os.ModeSymlink {
		return entry.Type().IsRegular()
	}
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular()
}

// kindLine matches the kind in each way that YAML and JSON permit.
var kindLine = regexp.MustCompile(`(?:^|[\s{,\x{FEFF}])["']?kind["']?[ \t]*:\s*["']?` + Kind + `\b`)

// hasKind reports whether the file has the kind ExpressionTest. It searches the text, so that it also finds a file with a
// syntax error.
func hasKind(path string) bool {
	file, err := os.Open(path)
	if err != nil {
		return true
	}
	defer func() { _ = file.Close() }()
	content, err := io.ReadAll(io.LimitReader(file, maxFile))
	return err != nil || kindLine.Match(content)
}

// readFile returns the content of a file of at most maxFile bytes.
func readFile(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	content, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err == nil && len(content) > maxFile {
		err = fmt.Errorf("the file has more than %d KiB, the limit: split it, or move objects to other files", maxFile>>10)
	}
	return content, err
}

// read decodes a file strictly. It returns all mistakes that it finds.
func read(path string) (*source, []Mistake) {
	s := &source{path: path}
	var err error
	if s.content, err = readFile(path); err != nil {
		return s, []Mistake{{Message: err.Error()}}
	}
	return s, s.decode()
}

func (s *source) decode() []Mistake {
	var document yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(s.content))
	if err := decoder.Decode(&document); err != nil && !errors.Is(err, io.EOF) {
		return []Mistake{{Message: err.Error()}}
	}
	if len(document.Content) != 1 || document.Content[0].Kind != yaml.MappingNode {
		return []Mistake{{Message: fmt.Sprintf("the file has no object: write apiVersion: %s and kind: %s", output.APIVersion, Kind)}}
	}
	s.root = document.Content[0]
	if err := decoder.Decode(&yaml.Node{}); !errors.Is(err, io.EOF) {
		return []Mistake{{Message: "the file has several documents: write one document, and move objects to other files or to the field objects"}}
	}
	// This decoder limits the size of aliases and rejects keys that occur twice.
	content, err := sigsyaml.YAMLToJSONStrict(s.content)
	if err != nil {
		return []Mistake{{Message: err.Error()}}
	}
	var found mistakes
	s.into(content, &found)
	if len(found.all) == 0 {
		s.check(&found)
	}
	for i := range found.all {
		found.all[i].Line = s.lineOf(found.all[i].Field)
	}
	slices.SortStableFunc(found.all, func(a, b Mistake) int { return cmp.Compare(a.Line, b.Line) })
	if more := len(found.all) - maxMistakes; more > 0 {
		found.all = append(found.all[:maxMistakes], Mistake{Message: fmt.Sprintf("%d more mistakes", more)})
	}
	return found.all
}

// mistakes collects mistakes in a file.
type mistakes struct{ all []Mistake }

func (m *mistakes) add(field, format string, arguments ...any) {
	m.all = append(m.all, Mistake{Field: field, Message: fmt.Sprintf(format, arguments...)})
}

// into decodes the file into s.test. It decodes each case separately, so that it finds the mistakes of several cases.
func (s *source) into(content []byte, found *mistakes) {
	var top struct {
		ExpressionTest
		Cases []json.RawMessage `json:"cases"`
	}
	if !found.decode("", content, &top) {
		return
	}
	s.test = top.ExpressionTest
	switch {
	case s.test.Kind != Kind:
		found.add("kind", "%q: must be %s", s.test.Kind, Kind)
	case s.test.APIVersion != output.APIVersion:
		found.add("apiVersion", "%q: must be %s", s.test.APIVersion, output.APIVersion)
	case len(top.Cases) > maxCases:
		found.add("cases", "there are %d, the limit is %d: split the file", len(top.Cases), maxCases)
	case len(top.Cases) == 0:
		found.add("cases", "there are none: add a case with a name and the field expect")
	default:
		s.test.Cases = make([]Case, len(top.Cases))
		for i, one := range top.Cases {
			found.decode(fmt.Sprintf("cases[%d]", i), one, &s.test.Cases[i])
		}
	}
}

// embedded matches the names of embedded Go structs in the path of a field.
var embedded = regexp.MustCompile(`\b[A-Z]\w*\.`)

// decode decodes JSON strictly. path is the path of the value. It returns false if the value has a wrong type.
func (m *mistakes) decode(path string, content []byte, into any) bool {
	strict, err := kjson.UnmarshalStrict(content, into)
	for _, one := range strict {
		if at, ok := errors.AsType[kjson.FieldError](one); ok {
			name := at.FieldPath()
			m.add(join(path, name), "unknown field%s: remove or rename it", nearest.DidYouMean("", last(name), fieldNames()))
			continue
		}
		m.add(path, "%v", one)
	}
	if err == nil {
		return true
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		m.add(join(path, embedded.ReplaceAllString(wrong.Field, "")), "the value is of type %s: must be of type %s", wrong.Value, typeName(wrong.Type))
	} else {
		m.add(path, "%v", err)
	}
	return false
}
