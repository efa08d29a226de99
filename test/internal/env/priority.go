// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package env

import (
	"context"
	"testing"

	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// CreatePriorityClass creates a PriorityClass, and waits until the API server admits pods with it. The API server reads
// PriorityClasses from a cache that may be late.
func (e *Env) CreatePriorityClass(t testing.TB, class *schedulingv1.PriorityClass) *schedulingv1.PriorityClass {
	t.Helper()
	class = Create(t, e.Client().SchedulingV1().PriorityClasses(), class)
	probe := Pod("probe", CelsetProfile)
	probe.Spec.PriorityClassName = class.Name
	Eventually(t, "pods with PriorityClass "+class.Name+" are admitted", func(ctx context.Context) (string, error) {
		_, err := e.Client().CoreV1().Pods(metav1.NamespaceDefault).Create(ctx, probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if apierrors.IsForbidden(err) {
			return err.Error(), nil
		}
		return "", err
	})
	return class
}
