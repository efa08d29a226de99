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

	"github.com/celset/celset/cmd/kubectl-celset/answers"
	"github.com/celset/celset/cmd/kubectl-celset/answers/playground"
	"github.com/celset/celset/internal/machine"
)

// example is an example in examples.json of the page.
type example struct {
	Title     string `json:"title"`
	Group     string `json:"group"`
	Documents string `json:"documents"`
	Machine   string `json:"machine"`
	Nodes     int    `json:"nodes"`
	InUse     int    `json:"inUse"`
}

// examplesOf returns a group of pods, the examples in manifests/examples and the YAML blocks of the pages about hardware, if they
// have a positive answer. Each example gets the first machine where everything fits.
func examplesOf(ctx context.Context, root string) ([]example, error) {
	classes, err := os.ReadFile(filepath.Join(root, "manifests", "examples", "deviceclasses.yaml"))
	if err != nil {
		return nil, err
	}
	found := []example{{Title: "two-workers", Group: "Groups of pods", Documents: gang}}
	for _, dir := range []struct{ path, group string }{{"", "Claims"}, {"gangs", "Groups of pods"}, {"placement", "Placements"}} {
		files, err := filepath.Glob(filepath.Join(root, "manifests", "examples", dir.path, "*.yaml"))
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			text := withoutSchema(string(content))
			switch {
			case filepath.Base(file) == "deviceclasses.yaml":
				continue
			case dir.path == "placement" && !strings.Contains(text, "kind: ManagedCluster\n"):
				text += "---\n" + hub
			case dir.path != "placement":
				text += "---\n" + strings.Join(usedClasses(text, strings.Split(string(classes), "\n---\n")), "---\n")
			}
			found = append(found, example{Title: strings.TrimSuffix(filepath.Base(file), ".yaml"), Group: dir.group, Documents: strings.TrimSuffix(text, "---\n")})
		}
	}
	pages, err := filepath.Glob(filepath.Join(root, "docs", "hardware", "*.md"))
	if err != nil {
		return nil, err
	}
	for _, page := range pages {
		content, err := os.ReadFile(page)
		if err != nil {
			return nil, err
		}
		found = append(found, onPage(string(content))...)
	}
	return placed(ctx, found)
}

// withoutSchema removes the comment for editors at the beginning of a file.
func withoutSchema(text string) string {
	if strings.HasPrefix(text, "# yaml-language-server:") {
		_, text, _ = strings.Cut(text, "\n")
	}
	return text
}

// usedClasses returns the documents whose DeviceClass the text names.
func usedClasses(text string, classes []string) (used []string) {
	for _, class := range classes {
		if name := className.FindStringSubmatch(class); name != nil && strings.Contains(text, "deviceClassName: "+name[1]) && !strings.Contains(text, "kind: DeviceClass\n") {
			used = append(used, strings.TrimSpace(withoutSchema(class))+"\n")
		}
	}
	return used
}

var (
	className = regexp.MustCompile(`kind: DeviceClass\nmetadata:\s*\{?\s*name: ([\w.-]+)`)
	heading   = regexp.MustCompile(`^#+ (.*)`)
)

// onPage returns an example for each YAML block with claims on a page, with the classes of the page that it names. A block
// belongs to the heading above it.
func onPage(content string) (found []example) {
	group, title, block := "", "", ""
	var classes []string
	inBlock := false
	for line := range strings.Lines(content) {
		switch at := heading.FindStringSubmatch(line); {
		case inBlock && strings.HasPrefix(line, "```"):
			inBlock = false
			if strings.Contains(block, "kind: DeviceClass\n") {
				classes = append(classes, strings.Split(block, "\n---\n")...)
			}
			if strings.Contains(block, "kind: ResourceClaim") {
				found = append(found, example{Title: title, Group: group, Documents: block})
			}
		case inBlock:
			block += line
		case strings.HasPrefix(line, "```yaml"):
			inBlock, block = true, ""
		case at != nil && group == "":
			group, title = at[1], at[1]
		case at != nil:
			title = at[1]
		}
	}
	for i := range found {
		if used := usedClasses(found[i].Documents, classes); len(used) > 0 {
			found[i].Documents = strings.TrimSpace(found[i].Documents) + "\n---\n" + strings.Join(used, "---\n")
		}
	}
	return found
}

// placed returns the examples with a machine on which everything fits, and without examples that fit on no machine. Examples
// with the same group and title get numbers.
func placed(ctx context.Context, found []example) ([]example, error) {
	page, titles := playground.New(), map[string]int{}
	var result []example
	for _, one := range found {
		ok, err := place(ctx, page, &one)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", one.Title, err)
		}
		if !ok {
			continue
		}
		key := one.Group + "\n" + one.Title
		if titles[key]++; titles[key] > 1 {
			one.Title = fmt.Sprintf("%s (%d)", one.Title, titles[key])
		}
		result = append(result, one)
	}
	return result, nil
}

// nodeCounts are the numbers of nodes to try. Groups of pods need many nodes.
var nodeCounts = []int{2, 18}

// place sets the machine and the number of nodes of an example.
func place(ctx context.Context, page *playground.Playground, one *example) (bool, error) {
	if one.Group == "Placements" {
		return fits(ctx, page, one)
	}
	for _, nodes := range nodeCounts {
		for _, m := range likely(one.Title) {
			if !slices.ContainsFunc(m.DeviceClasses(), func(class *deviceClass) bool { return strings.Contains(one.Documents, class.Name) }) {
				continue
			}
			one.Machine, one.Nodes = m.Name, nodes
			if ok, err := fits(ctx, page, one); ok || err != nil {
				return ok, err
			}
		}
		if !strings.Contains(one.Documents, "kind: PodGroup\n") {
			break
		}
	}
	return false, nil
}

// likely returns all machines. A machine comes first if the title has parts of its name, as in "HGX H100".
func likely(title string) []machine.Machine {
	named := func(m machine.Machine) (count int) {
		for part := range strings.SplitSeq(m.Name, "-") {
			if strings.Contains(strings.ToLower(title), part) {
				count++
			}
		}
		return count
	}
	machines := machine.All()
	slices.SortStableFunc(machines, func(a, b machine.Machine) int { return named(b) - named(a) })
	return machines
}

// fits reports whether an example has no problems, and all its subjects fit.
func fits(ctx context.Context, page *playground.Playground, one *example) (bool, error) {
	question, err := json.Marshal(answers.TryQuestion{Documents: one.Documents, Machine: one.Machine, Nodes: one.Nodes})
	if err != nil {
		return false, err
	}
	text, err := page.Answer(ctx, answers.Try, string(question))
	if err != nil {
		return false, err
	}
	var answer answers.TryAnswer
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		return false, err
	}
	ok := len(answer.Subjects) > 0 && !slices.ContainsFunc(answer.Problems, func(p answers.Problem) bool { return p.Severity == "error" })
	// A Placement may select none of the few clusters.
	return ok && !slices.ContainsFunc(answer.Subjects, func(s answers.SubjectAnswer) bool { return !s.Fits && s.Placement == nil }), nil
}
