// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"sigs.k8s.io/yaml"

	"github.com/celset/celset/cmd/kubectl-celset/suite"
	"github.com/celset/celset/internal/clusterstate"
	"github.com/celset/celset/internal/clusterstate/models"
	"github.com/celset/celset/internal/machine"
)

// text is a document, with the file that has it.
type text struct {
	file, content string
	identity
}

// identity has the fields that identify an object, and the extended resource of a class.
type identity struct {
	Kind     string `json:"kind"`
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		ExtendedResourceName string `json:"extendedResourceName"`
	} `json:"spec"`
}

// texts are the documents of an example, in order.
type texts struct {
	root, subject string
	// title is the title of the Markdown page with the subject.
	title string
	all   []text
}

var (
	heading = regexp.MustCompile(`(?m)^# (.*)`)
	comment = regexp.MustCompile(`\A(#.*\n)+`)
)

// add adds the documents of a file. From a Markdown page, it adds the subject and the classes.
func (t *texts) add(path string) error {
	raw, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	content := string(raw)
	name, err := filepath.Rel(t.root, path)
	if err != nil {
		return err
	}
	if filepath.Ext(path) != ".md" {
		if strings.HasPrefix(content, "# yaml-language-server:") {
			_, content, _ = strings.Cut(content, "\n")
		}
		return t.append(name, content)
	}
	t.title = heading.FindStringSubmatch(content)[1]
	// Every second part is a block.
	for i, part := range strings.Split("\n"+content, "\n```") {
		block, ok := strings.CutPrefix(part, "yaml\n")
		if i%2 == 0 || !ok || !strings.Contains("\n"+block, "\napiVersion:") {
			continue
		}
		if err := t.append(name, block); err != nil {
			return err
		}
	}
	_, subject, _ := strings.Cut(t.subject, "/")
	t.all = slices.DeleteFunc(t.all, func(d text) bool { return d.file == name && d.Kind != "DeviceClass" && d.Metadata.Name != subject })
	// The subject comes first, and its class after it.
	slices.SortStableFunc(t.all, func(a, b text) int { return rank(a, name) - rank(b, name) })
	return nil
}

// rank returns 0 for the subject on a page, 1 for a class on it, and 2 for a document of another file.
func rank(d text, page string) int {
	switch {
	case d.file != page:
		return 2
	case d.Kind == "DeviceClass":
		return 1
	}
	return 0
}

// append adds the documents in YAML.
func (t *texts) append(name, content string) error {
	for document := range strings.SplitSeq(content, "\n---\n") {
		one := text{file: name, content: strings.TrimSpace(document) + "\n"}
		if err := yaml.Unmarshal([]byte(document), &one.identity); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		t.all = append(t.all, one)
	}
	return nil
}

// String returns the documents without the classes that no other document names. Each file after the first begins with a comment
// that names it.
func (t *texts) String() string {
	var result strings.Builder
	file, dropped := "", ""
	for i, one := range t.all {
		if one.Kind == "DeviceClass" && !t.uses(&one) {
			dropped = one.file
			continue
		}
		content := one.content
		if i > 0 && result.Len() > 0 {
			result.WriteString("---\n")
			if one.file != file && one.file != "" {
				fmt.Fprintf(&result, "# From %s:\n", one.file)
			}
		}
		if one.Kind == "DeviceClass" && (dropped == one.file || one.file != file) {
			content = comment.ReplaceAllString(content, "") // it is about all classes of the file
		}
		file = one.file
		result.WriteString(content)
	}
	return result.String()
}

// uses reports whether a document names the class, or its extended resource.
func (t *texts) uses(class *text) bool {
	return slices.ContainsFunc(t.all, func(d text) bool {
		resource := class.Spec.ExtendedResourceName
		return d.Kind != "DeviceClass" && (strings.Contains(d.content, "deviceClassName: "+class.Metadata.Name) || resource != "" && strings.Contains(d.content, resource+":"))
	})
}

// addObjects adds the objects in the file with the case.
func (t *texts) addObjects(s *suite.Setting) error {
	const name = "the test case"
	for _, raw := range s.Objects {
		content, err := yaml.JSONToYAML(raw.Raw)
		if err != nil {
			return err
		}
		if err := t.append(name, string(content)); err != nil {
			return err
		}
	}
	if s.Claim == nil {
		return nil
	}
	spec, err := yaml.JSONToYAML(s.Claim.Raw)
	if err != nil {
		return err
	}
	t.all = slices.Insert(t.all, 0, text{})
	content := "apiVersion: " + resourceapi.SchemeGroupVersion.String() + "\nkind: ResourceClaim\nmetadata:\n  name: claim\nspec:\n"
	t.all[0] = text{file: name, content: content + "  " + strings.ReplaceAll(strings.TrimSpace(string(spec)), "\n", "\n  ") + "\n"}
	return nil
}

// addInUse adds a claim that has the devices in use.
func (t *texts) addInUse(ctx context.Context, one *example, inUse []suite.InUse) error {
	if len(inUse) == 0 {
		return nil
	}
	objects, err := t.objects(ctx, one)
	if err != nil {
		return err
	}
	content := "# Other pods use these devices.\napiVersion: " + resourceapi.SchemeGroupVersion.String() + "\nkind: ResourceClaim\n" +
		"metadata: {name: other, namespace: others}\nspec: {devices: {requests: [{name: devices}]}}\nstatus:\n  allocation:\n    devices:\n      results:\n"
	for i := range inUse {
		claims, err := inUse[i].Claims(objects)
		if err != nil {
			return err
		}
		for _, claim := range claims {
			for _, d := range claim.Status.Allocation.Devices.Results {
				content += fmt.Sprintf("      - {request: devices, driver: %s, pool: %s, device: %s", d.Driver, d.Pool, d.Device)
				if d.ShareID != nil {
					capacity, err := json.Marshal(d.ConsumedCapacity)
					if err != nil {
						return err
					}
					content += fmt.Sprintf(", shareID: %s, consumedCapacity: %s", *d.ShareID, capacity)
				}
				content += "}\n"
			}
		}
	}
	return t.append("", content)
}

// objects returns the devices of an example.
func (t *texts) objects(ctx context.Context, one *example) (*clusterstate.Objects, error) {
	if one.Machine != "" {
		m, err := machine.ByName(one.Machine)
		if err != nil {
			return nil, err
		}
		return models.Nodes(ctx, m, models.Names(one.Nodes))
	}
	documents, err := clusterstate.Decode("documents", []byte(t.String()))
	if err != nil {
		return nil, err
	}
	objects := &clusterstate.Objects{}
	for _, document := range documents {
		if err := objects.Add(document, "default"); err != nil {
			return nil, err
		}
	}
	return objects, nil
}
