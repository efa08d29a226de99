// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package redteam

import (
	"cmp"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/internal/testing/env"
	"github.com/celset/celset/internal/testing/redteam"
	"github.com/celset/celset/placement"
)

func quantity(text string) *resource.Quantity { return ptr.To(resource.MustParse(text)) }

// claim wants some devices that satisfy all expressions.
func claim(namespace, name string, count int64, expressions ...string) *resourceapi.ResourceClaim {
	parts := []env.Part{env.Request("r", driver, count)}
	for i, expression := range expressions {
		parts = append(parts, env.Constrained(fmt.Sprintf("c%d", i), expression))
	}
	result := env.Claim(name, parts...)
	result.Namespace = namespace
	return result
}

// claimOf is a claim with a case as constraint, as often as it says.
func claimOf(namespace string, c redteam.Case) *resourceapi.ResourceClaim {
	var expressions []string
	for range max(1, c.Constraints) {
		expressions = append(expressions, c.Text)
	}
	return claim(namespace, c.Name, cmp.Or(c.Devices, 2), expressions...)
}

// preferring is a claim with a case as preference, as often as it says: any devices will do, and
// some are better.
func preferring(namespace string, c redteam.Case) *resourceapi.ResourceClaim {
	result := claim(namespace, "preference-of-"+c.Name, cmp.Or(c.Devices, 2))
	for i := range max(1, c.Constraints) {
		env.Configure(env.Parameters(map[string]string{
			"apiVersion": v1alpha1.SchemeGroupVersion.String(), "kind": v1alpha1.PreferenceKind, "name": fmt.Sprintf("p%d", i), "expression": c.Text,
		}))(&result.Spec.Devices)
	}
	return result
}

// selecting is a claim with a case as selector.
func selecting(namespace string, c redteam.Case) *resourceapi.ResourceClaim {
	result := claim(namespace, "selector-"+c.Name, 1)
	result.Spec.Devices.Requests[0].Exactly.Selectors = []resourceapi.DeviceSelector{env.Selector(c.Text)}
	return result
}

// pod uses a claim, if one is named.
func pod(namespace, name, profile, claim string) *corev1.Pod {
	result := env.Pod(name, profile)
	if claim != "" {
		result = env.Pod(name, profile, claim)
	}
	result.Namespace = namespace
	return result
}

// placementOf selects clusters by an expression.
func placementOf(namespace, name, expression string) *clusterv1beta1.Placement {
	result := &clusterv1beta1.Placement{
		TypeMeta:   metav1.TypeMeta{APIVersion: clusterv1beta1.GroupVersion.String(), Kind: "Placement"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Annotations: map[string]string{placement.TakeAnnotation: "true"}},
	}
	result.Spec.Predicates = []clusterv1beta1.ClusterPredicate{{RequiredClusterSelector: clusterv1beta1.ClusterSelector{
		CelSelector: clusterv1beta1.ClusterCelSelector{CelExpressions: []string{expression}},
	}}}
	// These prioritizers read quantities that clusters report.
	for _, name := range []string{"ResourceAllocatableCPU", "ResourceAllocatableMemory"} {
		result.Spec.PrioritizerPolicy.Configurations = append(result.Spec.PrioritizerPolicy.Configurations, clusterv1beta1.PrioritizerConfig{
			ScoreCoordinate: &clusterv1beta1.ScoreCoordinate{Type: clusterv1beta1.ScoreCoordinateTypeBuiltIn, BuiltIn: name}, Weight: 1,
		})
	}
	return result
}

// remove deletes pods with their claims, and gives the devices back: no kubelet and no
// controller manager does it here.
func (l *lab) remove(ctx context.Context, namespace string, names ...string) error {
	for _, name := range names {
		if err := client.IgnoreNotFound(l.admin.Delete(ctx, pod(namespace, name, "", ""), client.GracePeriodSeconds(0))); err != nil {
			return err
		}
		if err := l.removeClaim(ctx, namespace, name); err != nil {
			return err
		}
	}
	return nil
}

func (l *lab) removeClaim(ctx context.Context, namespace, name string) error {
	for {
		err := l.tryToRemoveClaim(ctx, namespace, name)
		if err == nil || !isConflict(err) || ctx.Err() != nil {
			return err
		}
	}
}

func (l *lab) tryToRemoveClaim(ctx context.Context, namespace, name string) error {
	object := &resourceapi.ResourceClaim{}
	if err := l.admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object); err != nil {
		return client.IgnoreNotFound(err)
	}
	if object.Status.Allocation != nil || len(object.Status.ReservedFor) > 0 {
		object.Status = resourceapi.ResourceClaimStatus{}
		if err := l.admin.Status().Update(ctx, object); err != nil {
			return client.IgnoreNotFound(err)
		}
	}
	if len(object.Finalizers) > 0 {
		object.Finalizers = nil
		if err := l.admin.Update(ctx, object); err != nil {
			return client.IgnoreNotFound(err)
		}
	}
	return client.IgnoreNotFound(l.admin.Delete(ctx, object))
}
