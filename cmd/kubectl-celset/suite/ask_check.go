// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/dynamic-resource-allocation/structured"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/cmd/kubectl-celset/check"
	"github.com/celset/celset/cmd/kubectl-celset/placements"
	"github.com/celset/celset/internal/clusterstate"
)

// askCheck returns the errors that the command check reports about the subject. Without a subject, it checks the objects of the
// files and the field objects, but not the classes of the machine.
func (in *input) askCheck(ctx context.Context, features structured.Features, timeout time.Duration) (*answer, error) {
	if in.hub != nil {
		return in.checkPlacement(ctx)
	}
	wanted, err := in.checked()
	if err != nil {
		return nil, err
	}
	report, err := check.Run(ctx, in.state, wanted, check.Options{Features: features, AllClasses: true, Timeout: timeout})
	if err != nil {
		return nil, err
	}
	a := &answer{of: ofDefinition}
	for _, object := range report.Objects {
		for _, finding := range object.Errors {
			a.errors = append(a.errors, finding.Message)
		}
	}
	return a, nil
}

func (in *input) checkPlacement(ctx context.Context) (*answer, error) {
	object, err := in.placement()
	if err != nil {
		return nil, err
	}
	verdicts, err := placements.Check(ctx, []*clusterv1beta1.Placement{object})
	if err != nil {
		return nil, err
	}
	if err := in.hub.Evaluate(ctx, object, &verdicts[0], in.time()); err != nil {
		return nil, err
	}
	return &answer{of: ofDefinition, errors: verdicts[0].Errors}, nil
}

// checked returns a function that reports whether an object is checked.
func (in *input) checked() (func(object any) bool, error) {
	asked := in.state.Asked()
	if in.Subject == "" {
		all := clusterstate.New(asked).Checkable()
		if len(all) == 0 {
			return nil, errors.New("expect.errors: the case has no object to check: add a claim, template, group, DeviceClass or DeviceAttributes, and check the kinds of its objects")
		}
		return func(object any) bool {
			of, ok := object.(metav1.Object)
			return ok && slices.Contains(all, of)
		}, nil
	}
	kind, name, err := clusterstate.Split(in.Subject, slices.Concat(subjectKinds, checkedKinds)...)
	if err != nil {
		return nil, err
	}
	if kind == clusterstate.PodKind {
		return in.checkedOfPod()
	}
	is := func(object any) bool {
		of, ok := object.(metav1.Object)
		if !ok || of.GetName() != name {
			return false
		}
		inNamespace := of.GetNamespace() == in.Namespace
		switch object.(type) {
		case *resourceapi.DeviceClass:
			return kind == clusterstate.ClassKind
		case *resourceapi.ResourceClaimTemplate:
			return kind == clusterstate.TemplateKind && inNamespace
		case *resourceapi.ResourceClaim:
			return kind == clusterstate.ClaimKind && inNamespace
		case *schedulingapi.PodGroup:
			return kind == clusterstate.GroupKind && inNamespace
		case *v1alpha1.DeviceAttributes:
			return kind == clusterstate.AttributesKind
		}
		return false
	}
	if !slices.ContainsFunc(in.state.Checkable(), func(object metav1.Object) bool { return is(object) }) {
		return nil, fmt.Errorf("subject: the objects of the case have no %s in namespace %s", cut(in.Subject), in.Namespace)
	}
	return is, nil
}

// checkedOfPod returns a function that reports whether the pod of the subject uses an object.
func (in *input) checkedOfPod() (func(object any) bool, error) {
	subject, err := in.state.Subject(in.Subject, in.Namespace)
	if err != nil {
		return nil, err
	}
	var claims, templates []string
	for _, entry := range subject.Pod.Spec.ResourceClaims {
		if entry.ResourceClaimName != nil {
			claims = append(claims, *entry.ResourceClaimName)
		}
		if entry.ResourceClaimTemplateName != nil {
			templates = append(templates, *entry.ResourceClaimTemplateName)
		}
	}
	group := in.state.GroupOf(subject.Pod)
	if len(claims)+len(templates) == 0 && group == nil {
		return nil, fmt.Errorf("expect.errors: %s has no claim, template or group to check", cut(in.Subject))
	}
	return func(object any) bool {
		switch object := object.(type) {
		case *resourceapi.ResourceClaim:
			return object.Namespace == in.Namespace && slices.Contains(claims, object.Name)
		case *resourceapi.ResourceClaimTemplate:
			return object.Namespace == in.Namespace && slices.Contains(templates, object.Name)
		case *schedulingapi.PodGroup:
			return object == group
		}
		return false
	}, nil
}
