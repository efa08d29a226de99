// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/celset/celset/internal/clusterstate"
	"github.com/celset/celset/internal/machine"
	"github.com/celset/celset/internal/printable"
)

// Limits of a case.
const (
	maxName    = 200
	maxFiles   = 100
	maxObjects = 1000
	maxNodes   = 1000
	maxInUse   = 1000
)

// subjectKinds are the kinds of subjects. The kinds in checkedKinds are valid only with the expectation errors.
var (
	subjectKinds = []string{clusterstate.ClaimKind, clusterstate.TemplateKind, clusterstate.PodKind, clusterstate.GroupKind, clusterstate.PlacementKind}
	checkedKinds = []string{clusterstate.ClassKind, clusterstate.AttributesKind}
)

// check adds the mistakes that can be found without reading other files.
func (s *source) check(found *mistakes) {
	found.setting("", &s.test.Setting)
	seen := map[string]bool{}
	for i := range s.test.Cases {
		c, path := &s.test.Cases[i], fmt.Sprintf("cases[%d]", i)
		switch {
		case c.Name == "":
			found.add(path, "the case has no name: add the field name")
		case len(c.Name) > maxName || printable.Line(c.Name) != c.Name:
			found.add(path+".name", "%q: must be a line of at most %d bytes without control characters", cut(c.Name), maxName)
		case seen[c.Name]:
			found.add(path+".name", "%q: another case has this name: rename one of them", c.Name)
		}
		seen[c.Name] = true
		found.setting(path+".", &c.Setting)
		found.expectations(path+".expect", &c.Expect)
	}
}

// setting checks a setting. prefix is empty, or the path of the case with a dot.
func (m *mistakes) setting(prefix string, s *Setting) {
	m.atMost(prefix+"files", len(s.Files), maxFiles)
	m.atMost(prefix+"objects", len(s.Objects), maxObjects)
	m.atMost(prefix+"nodes", len(s.Nodes), maxNodes)
	m.atMost(prefix+"inUse", len(s.InUse), maxInUse)
	for i, name := range s.Files {
		if name == "" || name == "-" || strings.Contains(name, "://") || filepath.IsAbs(name) {
			m.add(fmt.Sprintf("%sfiles[%d]", prefix, i), "%q: must be a path relative to the test file", cut(name))
		}
	}
	if s.Claim != nil && s.Subject != "" {
		m.add(prefix+"subject", "can't be used with claim, which is the subject: remove one of them")
	}
	if s.Subject != "" {
		if kind, _, err := clusterstate.Split(s.Subject, slices.Concat(subjectKinds, checkedKinds)...); err != nil || kind == "" {
			m.add(prefix+"subject", "%q: must be %s/NAME", cut(s.Subject), strings.Join(subjectKinds, "/NAME, "))
		}
	}
	if s.Machine != nil {
		if _, err := machine.ByName(s.Machine.Name); err != nil {
			m.add(prefix+"machine.name", "%q: must be one of %s", cut(s.Machine.Name), strings.Join(machine.Names(), ", "))
		}
		if s.Machine.Nodes < 0 || s.Machine.Nodes > maxNodes {
			m.add(prefix+"machine.nodes", "%d: must be from 1 to %d", s.Machine.Nodes, maxNodes)
		}
	}
	for i := range s.InUse {
		m.inUse(fmt.Sprintf("%sinUse[%d]", prefix, i), &s.InUse[i])
	}
}

func (m *mistakes) inUse(path string, u *InUse) {
	m.atMost(path+".nodes", len(u.Nodes), maxNodes)
	m.atMost(path+".devices", len(u.Devices), maxInUse)
	switch {
	case len(u.Devices) > 0 && u.Count != 0:
		m.add(path+".count", "can't be used with devices: remove one of them")
	case len(u.Devices) == 0 && u.Count < 1:
		m.add(path, "the entry has no devices: add devices, a list of names, or count, a number of at least 1")
	}
	for _, name := range slices.Sorted(maps.Keys(u.Capacity)) {
		if amount, err := resource.ParseQuantity(u.Capacity[name]); err != nil || amount.Sign() < 0 {
			m.add(path+".capacity", "%s: %q: must be a quantity of at least 0", cut(name), cut(u.Capacity[name]))
		}
	}
}

// expectations checks that the expectations don't contradict each other.
func (m *mistakes) expectations(path string, e *Expectations) {
	chosen := map[string]bool{
		"devices": e.Devices != nil, "requests": e.Requests != nil, "nodesThatFit": e.NodesThatFit != nil, "nodes": e.Nodes != nil, "clusters": e.Clusters != nil,
		"satisfies": e.Satisfies != "",
	}
	for _, name := range slices.Sorted(maps.Keys(chosen)) {
		if chosen[name] && e.None != "" {
			m.add(path+"."+name, "can't be used with none, which expects that nothing is chosen: remove one of them")
		}
		if chosen[name] && e.Errors != nil {
			m.add(path+"."+name, "can't be used with errors, because nothing is chosen in a check: use two cases")
		}
	}
	if e.Errors != nil && (e.None != "" || e.Steps != nil) {
		m.add(path+".errors", "can't be used with none or steps: use two cases")
	}
	if e.Requests != nil && len(e.Requests) == 0 {
		m.add(path+".requests", "is empty, so it expects nothing: name a request, or remove the field")
	}
	// Each text contains an empty part.
	if e.None != "" && oneLine(e.None) == "" {
		m.add(path+".none", "is blank: write a part of the reason")
	}
	for i, text := range e.Errors {
		if oneLine(text) == "" {
			m.add(fmt.Sprintf("%s.errors[%d]", path, i), "is blank: write a part of the error")
		}
	}
	if e.Steps != nil && e.Steps.AtMost < 0 {
		m.add(path+".steps.atMost", "%d: must be at least 0", e.Steps.AtMost)
	}
}

func (m *mistakes) atMost(path string, count, limit int) {
	if count > limit {
		m.add(path, "there are %d, the limit is %d: split the case or the file", count, limit)
	}
}

// cut shortens a text for a message.
func cut(text string) string {
	if len(text) > maxName {
		return strings.ToValidUTF8(text[:maxName], "") + "..."
	}
	return text
}

// isEmpty reports whether there is no expectation.
func (e *Expectations) isEmpty() bool {
	return e.Devices == nil && e.Requests == nil && e.NodesThatFit == nil && e.Nodes == nil && e.Clusters == nil &&
		e.Satisfies == "" && e.None == "" && e.Steps == nil && e.Errors == nil
}

// With returns the setting of a case: the setting of the file with the fields of the case.
func (s Setting) With(of *Setting) Setting {
	s.Files, s.Objects = slices.Concat(s.Files, of.Files), slices.Concat(s.Objects, of.Objects)
	gates := maps.Clone(s.FeatureGates)
	if gates == nil {
		gates = map[string]bool{}
	}
	maps.Copy(gates, of.FeatureGates)
	s.FeatureGates = gates
	if of.Machine != nil {
		s.Machine = of.Machine
	}
	if of.InUse != nil {
		s.InUse = of.InUse
	}
	if of.Claim != nil || of.Subject != "" {
		s.Claim, s.Subject = of.Claim, of.Subject
	}
	if of.Namespace != "" {
		s.Namespace = of.Namespace
	}
	if of.Nodes != nil {
		s.Nodes = of.Nodes
	}
	if of.Now != nil {
		s.Now = of.Now
	}
	return s
}
