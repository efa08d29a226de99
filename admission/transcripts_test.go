// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	"sigs.k8s.io/yaml"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/internal/testing/shorthand"
	"github.com/celset/celset/internal/testing/transcript"
)

// TestVerdicts compares the verdicts on claims, classes and groups with a transcript.
func TestVerdicts(t *testing.T) {
	checker := newChecker(t, Options{})
	var common string
	classes := fakeClasses{}
	transcript.Run(t, "testdata/verdicts.txt", func(t *testing.T, input string) string {
		directive, rest, _ := strings.Cut(input, " ")
		switch directive {
		case "claim":
			common = rest
			return ""
		case "class":
			name, spec, _ := strings.Cut(rest, " ")
			delete(classes, name)
			switch spec {
			case "missing":
			case "unavailable":
				classes[name] = nil
			default:
				classes[name] = classOf(t, name, spec)
				return told(judged(checker.Class(t.Context(), classes[name])))
			}
			return ""
		case "group":
			group := &schedulingapi.PodGroup{}
			require.NoError(t, yaml.UnmarshalStrict([]byte(rest), group))
			defined := []v1alpha1.NodeSetConstraint{{Name: "rack", Expression: "nodes.size() > 1", PodsPerNode: 1}}
			for _, name := range slices.Sorted(maps.Keys(classes)) {
				constraints, _ := v1alpha1.ClassNodeSets(classes[name])
				defined = append(defined, constraints...)
			}
			return told(judged(checker.PodGroup(t.Context(), group, defined)))
		}
		claim, err := shorthand.Claim(common, input)
		require.NoError(t, err)
		said := told(judged(checker.Claim(t.Context(), claim, classes)))
		inTemplate := strings.NewReplacer("spec.spec.", "spec.", "ResourceClaimTemplate", "ResourceClaim").Replace(
			told(judged(checker.Template(t.Context(), templateOf(claim), classes))))
		require.Equal(t, said, inTemplate)
		return said
	})
}

func told(v Verdict) string {
	var lines []string
	for _, text := range texts(v.Errors) {
		lines = append(lines, "error: "+text)
	}
	for _, text := range v.Warnings {
		lines = append(lines, "warning: "+text)
	}
	if v.Undecided {
		lines = append(lines, "undecided")
	}
	return strings.Join(lines, "\n")
}

// TestUpdatesOfClasses compares the verdicts on updates of a class with a transcript.
func TestUpdatesOfClasses(t *testing.T) {
	checker := newChecker(t, Options{})
	transcript.Run(t, "testdata/ratchet.txt", func(t *testing.T, input string) string {
		before, after, _ := strings.Cut(input, " -> ")
		judge := func(config string) Verdict {
			return judged(checker.Class(t.Context(), classOf(t, "mla", "config: "+config)))
		}
		return told(Ratcheted(judge(before), judge(after)))
	})
}

func TestDemand(t *testing.T) {
	transcript.Run(t, "testdata/demand.txt", func(t *testing.T, input string) string {
		requests, covered, _ := strings.Cut(input, " of ")
		got := demandOf(&claimOf(t, "requests: "+requests).Spec.Devices, strings.Fields(covered), DefaultDevices)
		return fmt.Sprintf("%d devices, %s sets", got.devices, got.sets)
	})
}
