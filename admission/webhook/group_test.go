// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/celset/celset/apis/celset/v1alpha1"
)

// groupOf returns a PodGroup that refers to the constraint with the name, unless the name is empty. If expression is not empty,
// the annotation defines the constraint "own".
func groupOf(name, expression string) *schedulingapi.PodGroup {
	group := &schedulingapi.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: "train"}}
	group.TypeMeta = metav1.TypeMeta{APIVersion: schedulingapi.SchemeGroupVersion.String(), Kind: "PodGroup"}
	if name != "" {
		group.Spec.SchedulingConstraints = &schedulingapi.PodGroupSchedulingConstraints{
			Topology: []schedulingapi.TopologyConstraint{{Key: v1alpha1.AttributeDomain + "/" + name}}}
	}
	if expression != "" {
		group.Annotations = map[string]string{v1alpha1.NodeSetAnnotation: "apiVersion: celset.dev/v1alpha1\nkind: CELNodeSetConstraint\nname: own\nexpression: " + expression}
	}
	return group
}

// listing returns a reader whose lists contain the given objects.
func listing(t *testing.T, class *resourceapi.DeviceClass, template *resourceapi.ResourceClaimTemplate, claim *resourceapi.ResourceClaim) *reader {
	return &reader{t: t, list: func(into client.ObjectList) {
		switch into := into.(type) {
		case *resourceapi.DeviceClassList:
			if class != nil {
				into.Items = append(into.Items, *class)
			}
		case *resourceapi.ResourceClaimTemplateList:
			if template != nil {
				into.Items = append(into.Items, *template)
			}
		case *resourceapi.ResourceClaimList:
			if claim != nil {
				into.Items = append(into.Items, *claim)
			}
		}
	}}
}

func TestGroups(t *testing.T) {
	class := classOf(t, "mla", `config: [nodeSet: {name: near, expression: nodes.size() > 1}, nodeSet: {name: broken, expression: nodes.al(n)}]`)
	template := templateOf(claimOf(t, `config: [nodeSet: {name: of_template, expression: nodes.size() > 1}]`))
	claim := claimOf(t, `config: [nodeSet: {name: of_claim, expression: nodes.size() > 1}]`)
	nothing, mended := listing(t, nil, nil, nil), listing(t, classOf(t, "mla", `config: [nodeSet: {name: broken, expression: nodes.size() > 1}]`), template, claim)
	cached := listing(t, class, nil, nil)
	for name, test := range map[string]struct {
		cached, live      *reader
		group             *schedulingapi.PodGroup
		refused, warnings string
	}{
		"plain":                {nothing, nothing, groupOf("", ""), "", ""},
		"annotation":           {nothing, nothing, groupOf("own", "nodes.size() > 1"), "", ""},
		"broken annotation":    {nothing, nothing, groupOf("own", "nodes.al(n)"), "metadata.annotations[celset.dev/node-set-constraint].expression: Invalid value: ERROR", ""},
		"malformed annotation": {nothing, nothing, groupOf("own", "1"), "expression: Invalid value: must be a string", ""},
		"only pod of a node":   {nothing, nothing, groupOf("own", "nodes.all(n, n.pod.labels.role == 'a')"), "", ""},
		"several pods":         {nothing, nothing, groupOf("own", "nodes.all(n, n.pods.exists(p, p.labels.role == 'a'))\npodsPerNode: 2"), "", ""},
		"one of several":       {nothing, nothing, groupOf("own", "nodes.all(n, n.pod.labels.role == 'a')\npodsPerNode: 2"), onePod, ""},
		"prefers one":          {nothing, nothing, groupOf("own", "nodes.size() > 1\npreference: nodes.filter(n, n.pod.index == 0).size()\npodsPerNode: 2"), onePod, ""},
		"unused annotation":    {nothing, nothing, groupOf("", "nodes.size() > 1"), "", "the group does not refer to"},
		"class":                {cached, nothing, groupOf("near", ""), "", ""},
		"broken class":         {cached, listing(t, class, nil, nil), groupOf("broken", ""), "DeviceClass mla: spec.config[1].opaque.parameters.expression: Invalid value", ""},
		"mended class":         {cached, mended, groupOf("broken", ""), "", ""},
		"template":             {cached, mended, groupOf("of_template", ""), "", ""},
		"claim":                {cached, mended, groupOf("of_claim", ""), "", ""},
		"nowhere":              {cached, mended, groupOf("of_clam", ""), "", `did you mean "celset.dev/of_claim"?`},
		"unreadable":           {&reader{t: t}, &reader{t: t}, groupOf("near", ""), "", "no valid CELNodeSetConstraint defines"},
	} {
		t.Run(name, func(t *testing.T) {
			answer := ask(t, newServer(t, test.cached, test.live), GroupPath, reviewOf(t, test.group, nil))
			require.Equal(t, test.refused == "", answer.Allowed)
			if !answer.Allowed {
				require.EqualValues(t, http.StatusUnprocessableEntity, answer.Result.Code)
				require.Contains(t, answer.Result.Message, `PodGroup.scheduling.k8s.io "train" is invalid: `)
				require.Contains(t, answer.Result.Message, test.refused)
			}
			if test.warnings == "" {
				require.Empty(t, answer.Warnings)
			} else {
				require.Len(t, answer.Warnings, 1)
				require.Contains(t, answer.Warnings[0], test.warnings)
			}
		})
	}
}

// TestGroupsReadTheirNamespace tests that only templates and claims of the group's own namespace are read.
func TestGroupsReadTheirNamespace(t *testing.T) {
	live := listing(t, nil, nil, nil)
	ask(t, newServer(t, listing(t, nil, nil, nil), live), GroupPath, reviewOf(t, groupOf("near", ""), nil))
	require.Equal(t, []string{"default", "default"}, live.namespaces)
}

const onePod = "podsPerNode: Invalid value: 2: must be 1 if an expression reads n.pod: read n.pods, or remove podsPerNode"

// TestUpdatesOfGroups tests that an update is rejected only for new mistakes, and that updates of labels are not checked.
func TestUpdatesOfGroups(t *testing.T) {
	nothing := listing(t, nil, nil, nil)
	server := newServer(t, nothing, nothing)
	wrong, right := groupOf("own", "nodes.al(n)"), groupOf("own", "nodes.size() > 1")
	labelled := wrong.DeepCopy()
	labelled.Labels = map[string]string{"a": "b"}
	require.True(t, ask(t, server, GroupPath, reviewOf(t, labelled, wrong)).Allowed)
	require.False(t, ask(t, server, GroupPath, reviewOf(t, wrong, right)).Allowed)
	stillWrong := wrong.DeepCopy()
	stillWrong.Annotations[v1alpha1.NodeSetAnnotation] += "\npodsPerNode: 2"
	answer := ask(t, server, GroupPath, reviewOf(t, stillWrong, wrong))
	require.True(t, answer.Allowed)
	require.Len(t, answer.Warnings, 1)
	require.Contains(t, answer.Warnings[0], "the stored object already has this mistake: ")
}
