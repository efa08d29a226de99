// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	configv1alpha1 "github.com/celset/celset/apis/config/v1alpha1"
	"github.com/celset/celset/cmd/internal/served"
	"github.com/celset/celset/cmd/kubectl-celset/fit"
	"github.com/celset/celset/internal/clusterstate"
)

// Schedulers are the schedulers of a cluster that publish their profiles.
type Schedulers struct {
	served.Schedulers
	// Namespace is the namespace of the Leases with the profiles. Err is the error of reading the Leases, or nil.
	Namespace string
	Err       error
}

// schedulersOf returns the schedulers, and the arguments of the plugin for a pod. Without a pod or a profile, it returns the
// arguments in the options.
func (a *Answers) schedulersOf(ctx context.Context, pod *corev1.Pod) (*Schedulers, *configv1alpha1.DynamicResourcesCELArgs) {
	if a.Schedulers == nil || pod == nil {
		return nil, a.Args
	}
	schedulers := a.Schedulers(ctx)
	if _, profile := schedulers.Profile(pod.Spec.SchedulerName); profile != nil {
		args := profile.Args
		return &schedulers, &args
	}
	return &schedulers, a.Args
}

// addTo adds a reason to a report if the pod's scheduler does not support constraints that the pod needs.
func (s *Schedulers) addTo(report *fit.Scheduling, state *clusterstate.State, subject *clusterstate.Subject) {
	if s != nil {
		report.AddServed(state, subject, s.Schedulers, s.Namespace, s.Err)
	}
}
