// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/celset/celset/cel/fairness"
)

// Path is the URL path at which [Register] adds the webhook.
const Path = "/validate-placements"

const (
	// maxErrors is the maximum number of errors in an answer.
	maxErrors = 20
	// maxJudged is the maximum number of concurrent checks. Each namespace has at most one. maxWaiting is the maximum number of
	// waiting checks of a namespace.
	maxJudged, maxWaiting = 64, 64
)

// Register adds the webhook to a server at [Path]. The server may also have other webhooks. It needs no manager.
func Register(server webhook.Server, options Options) error {
	checker, err := NewChecker(options)
	if err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	if err := clusterv1beta1.Install(scheme); err != nil {
		return fmt.Errorf("admission of Placements: %w", err)
	}
	server.Register(Path, admission.WithValidator(scheme, checker.Validator()))
	return nil
}

// Validator returns the checker as a validator for controller-runtime. Its errors have the reason Invalid, like errors of the
// API server's own validation.
func (c *Checker) Validator() admission.Validator[*clusterv1beta1.Placement] {
	return validator{c, fairness.NewTurns(maxJudged, maxWaiting)}
}

type validator struct {
	checker *Checker
	turns   *fairness.Turns
}

// take waits for the turn of a namespace. The caller must call end after the check.
func (v validator) take(ctx context.Context, namespace string) (end func(), err error) {
	end, err = v.turns.Take(ctx, namespace)
	if errors.Is(err, fairness.ErrTooMany) {
		return nil, apierrors.NewTooManyRequests(fmt.Sprintf("%d Placements of namespace %s wait to be checked; try again", maxWaiting, namespace), 1)
	}
	return end, err
}

func (v validator) ValidateCreate(ctx context.Context, object *clusterv1beta1.Placement) (admission.Warnings, error) {
	end, err := v.take(ctx, object.Namespace)
	if err != nil {
		return nil, err
	}
	defer end()
	verdict, err := v.checker.Check(ctx, object)
	if err != nil {
		return nil, err
	}
	return verdict.answer(object)
}

func (v validator) ValidateUpdate(ctx context.Context, old, object *clusterv1beta1.Placement) (admission.Warnings, error) {
	end, err := v.take(ctx, object.Namespace)
	if err != nil {
		return nil, err
	}
	defer end()
	verdict, err := v.checker.CheckUpdate(ctx, old, object)
	if err != nil {
		return nil, err
	}
	return verdict.answer(object)
}

// ValidateDelete accepts every deletion.
func (validator) ValidateDelete(context.Context, *clusterv1beta1.Placement) (admission.Warnings, error) {
	return nil, nil
}

func (v Verdict) answer(object *clusterv1beta1.Placement) (admission.Warnings, error) {
	if len(v.Errors) == 0 {
		return v.Warnings, nil
	}
	errs := v.Errors[:min(maxErrors, len(v.Errors))]
	if n := len(v.Errors) - len(errs); n > 0 {
		errs = append(errs[:len(errs):len(errs)], field.Invalid(field.NewPath("spec"), field.OmitValueType{}, fmt.Sprintf("%d more fields are invalid", n)))
	}
	kind := schema.GroupKind{Group: clusterv1beta1.GroupName, Kind: "Placement"}
	return v.Warnings, apierrors.NewInvalid(kind, object.Name, errs)
}
