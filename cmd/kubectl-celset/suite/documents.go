// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/celset/celset/internal/clusterstate"
	"github.com/celset/celset/internal/clusterstate/reading"
)

// reader reads the files that cases name. It caches their objects, because the cases of a test file often name the same files.
type reader struct {
	// folder is the directory of the test file.
	folder string
	known  map[string][]clusterstate.Document
}

// documents returns all objects of a setting as documents.
func (r *reader) documents(s *Setting) ([]clusterstate.Document, error) {
	var all []clusterstate.Document
	for _, name := range s.Files {
		found, err := r.file(name)
		if err != nil {
			return nil, fmt.Errorf("files: %w", err)
		}
		all = append(all, found...)
	}
	for i, raw := range s.Objects {
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(raw.Raw); err != nil {
			return nil, fmt.Errorf("objects[%d]: %w", i, err)
		}
		all = append(all, clusterstate.Document{Source: fmt.Sprintf("objects[%d]", i), Object: object})
	}
	if s.Claim != nil {
		object := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": resourceapi.SchemeGroupVersion.String(), "kind": "ResourceClaim", "metadata": map[string]any{"name": claimName},
		}}
		spec := map[string]any{}
		if err := json.Unmarshal(s.Claim.Raw, &spec); err != nil {
			return nil, fmt.Errorf("claim: must be the spec of a ResourceClaim: %w", err)
		}
		object.Object["spec"] = spec
		all = append(all, clusterstate.Document{Source: "claim", Object: object})
	}
	return all, nil
}

// claimName is the name of the claim with the spec in the field claim.
const claimName = "claim"

func (r *reader) file(name string) ([]clusterstate.Document, error) {
	path := filepath.Join(r.folder, filepath.FromSlash(name))
	if known, ok := r.known[path]; ok {
		return known, nil
	}
	var found []clusterstate.Document
	_, err := os.Stat(path)
	switch {
	case err != nil: // kubectl's library would take the name for a URL
	case strings.EqualFold(filepath.Ext(path), ".md"):
		found, err = page(path)
	default:
		found, err = reading.Documents(resource.FilenameOptions{Filenames: []string{path}}, nil)
	}
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%s: the file has no objects", path)
	}
	r.known[path] = found
	return found, nil
}

// page returns the objects in the YAML blocks of a Markdown page. It leaves out blocks that are no objects, such as a part of an
// object.
func page(path string) ([]clusterstate.Document, error) {
	content, err := readFile(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var all []clusterstate.Document
	for _, b := range blocks(string(content)) {
		name := fmt.Sprintf("%s:%d", path, b.line)
		if !strings.Contains("\n"+b.text, "\napiVersion:") {
			continue
		}
		found, err := clusterstate.Decode(name, []byte(b.text))
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// block is a fenced block of a Markdown page, with the line at which its text begins.
type block struct {
	line int
	text string
}

// blocks returns the fenced blocks of a page with the language yaml. The fence of a block may be indented, for example in a list.
func blocks(content string) (found []block) {
	var open *block
	fence, indent := "", 0
	skipped := false
	number := 0
	for line := range strings.Lines(content) {
		number++
		text := strings.TrimLeft(line, " ")
		switch ends := strings.TrimSpace(text); {
		case fence == "":
			if ticks := len(text) - len(strings.TrimLeft(text, "`")); ticks >= 3 {
				fence, indent = text[:ticks], len(line)-len(text)
				language, _, _ := strings.Cut(strings.TrimSpace(text[ticks:]), " ")
				skipped = language != "yaml" && language != "yml"
				open = &block{line: number + 1}
			}
		case strings.HasPrefix(ends, fence) && strings.Trim(ends, "`") == "":
			if !skipped {
				found = append(found, *open)
			}
			fence = ""
		default:
			own := min(indent, len(line)-len(text))
			open.text += line[own:]
		}
	}
	return found
}
