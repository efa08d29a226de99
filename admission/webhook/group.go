// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"

	resourceapi "k8s.io/api/resource/v1"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/celset/celset/admission"
	"github.com/celset/celset/apis/celset/v1alpha1"
)

// relevant returns the part of a PodGroup whose changes make the webhook check an update.
func relevant(group *schedulingapi.PodGroup) any {
	return []any{group.Annotations[v1alpha1.NodeSetAnnotation], group.Spec.SchedulingConstraints}
}

// group checks a PodGroup, first with the constraints of the classes in the cache. If the verdict has errors or is undecided,
// it checks again with the classes, templates and claims in the API server.
func (r Readers) group(ctx context.Context, checker *admission.Checker, group *schedulingapi.PodGroup) (admission.Verdict, error) {
	var defined []v1alpha1.NodeSetConstraint
	if _, refers := v1alpha1.NodeSetReference(group); refers {
		defined = nodeSetsOfClasses(ctx, r.Cached)
	}
	verdict, err := checker.PodGroup(ctx, group, defined)
	if err != nil || !verdict.Undecided && len(verdict.Errors) == 0 {
		return verdict, err
	}
	return checker.PodGroup(ctx, group, append(nodeSetsOfClasses(ctx, r.Live), nodeSetsOfClaims(ctx, r.Live, namespaceOf(ctx, group))...))
}

// nodeSetsOfClasses returns the valid node set constraints of all classes, or nil if the classes can't be listed.
func nodeSetsOfClasses(ctx context.Context, from client.Reader) []v1alpha1.NodeSetConstraint {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	var classes resourceapi.DeviceClassList
	if from.List(ctx, &classes, client.Limit(maxListed)) != nil {
		return nil
	}
	var result []v1alpha1.NodeSetConstraint
	for i := range classes.Items {
		constraints, _ := v1alpha1.ClassNodeSets(&classes.Items[i])
		result = append(result, constraints...)
	}
	return result
}

// nodeSetsOfClaims returns the valid node set constraints of the templates and claims in a namespace. If one of the two lists
// fails, it returns the constraints of the other list.
func nodeSetsOfClaims(ctx context.Context, from client.Reader, namespace string) []v1alpha1.NodeSetConstraint {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	var result []v1alpha1.NodeSetConstraint
	var templates resourceapi.ResourceClaimTemplateList
	if from.List(ctx, &templates, client.InNamespace(namespace), client.Limit(maxListed)) == nil {
		for i := range templates.Items {
			constraints, _ := v1alpha1.TemplateCarrier(&templates.Items[i]).NodeSets()
			result = append(result, constraints...)
		}
	}
	var claims resourceapi.ResourceClaimList
	if from.List(ctx, &claims, client.InNamespace(namespace), client.Limit(maxListed)) == nil {
		for i := range claims.Items {
			constraints, _ := v1alpha1.ClaimCarrier(&claims.Items[i]).NodeSets()
			result = append(result, constraints...)
		}
	}
	return result
}
