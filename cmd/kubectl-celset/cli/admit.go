// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	authorizationapi "k8s.io/api/authorization/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	draclient "k8s.io/dynamic-resource-allocation/client"

	"github.com/celset/celset/cmd/kubectl-celset/fit"
	"github.com/celset/celset/internal/clusterstate"
)

// admit checks whether admission policies, webhooks or quotas would reject a claim from a template, and adds the reason to s.
// It sends a dry run with the caller's rights. A policy that distinguishes users may decide differently for
// kube-controller-manager.
func (k *clusterInfo) admit(ctx context.Context, s *fit.Scheduling, subject *clusterstate.Subject) error {
	if k.client == nil || subject.Pod != nil && subject.Pod.Spec.NodeName != "" {
		return nil
	}
	for _, claim := range subject.Made {
		key := fmt.Sprint(claim.Namespace, claim.Labels, claim.Annotations, claim.Spec.String())
		if slices.Contains(k.admitted, key) {
			continue
		}
		k.admitted = append(k.admitted, key)
		err := k.tryToCreate(ctx, claim)
		if err == nil {
			continue
		}
		text := fmt.Sprintf("claim %s: the API server rejects a claim from the template: %v", claim.Name, err)
		if refuses, asking := k.refuses(ctx, claim.Namespace, err); refuses {
			s.Refused = append(s.Refused, text)
		} else if asking != nil {
			return asking
		} else {
			s.NotChecked = append(s.NotChecked, fmt.Sprintf("whether the API server admits claim %s: %v", claim.Name, err))
		}
	}
	return nil
}

func (k *clusterInfo) tryToCreate(ctx context.Context, claim *resourceapi.ResourceClaim) error {
	made := claim.DeepCopy()
	made.GenerateName, made.Name = claim.Name+"-", ""
	_, err := draclient.New(k.client).ResourceClaims(claim.Namespace).Create(ctx, made, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

// refuses reports whether the API server rejects the claim itself. An error because of the caller's missing rights or a failing
// webhook is no rejection.
func (k *clusterInfo) refuses(ctx context.Context, namespace string, err error) (bool, error) {
	if apierrors.IsInvalid(err) || strings.Contains(err.Error(), "denied the request") {
		return true, nil
	}
	if !apierrors.IsForbidden(err) {
		return false, nil
	}
	review := &authorizationapi.SelfSubjectAccessReview{Spec: authorizationapi.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationapi.ResourceAttributes{
		Namespace: namespace, Verb: "create", Group: resourceapi.GroupName, Resource: "resourceclaims",
	}}}
	review, asking := k.client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	return asking == nil && review.Status.Allowed, asking
}
