// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package fit_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/celset/celset/allocator/explain"
	"github.com/celset/celset/apis/celset/v1alpha1"
	configv1alpha1 "github.com/celset/celset/apis/config/v1alpha1"
	"github.com/celset/celset/cmd/internal/served"
	"github.com/celset/celset/cmd/kubectl-celset/fit"
)

// TestServed checks that a pod with constraints fits only if its scheduler publishes that it supports constraints.
func TestServed(t *testing.T) {
	s := state()
	claim := s.Claims[1]
	constraint := resourceapi.FullyQualifiedName("celset.dev/row")
	claim.Spec.Devices.Constraints = []resourceapi.DeviceConstraint{{MatchAttribute: &constraint}}
	claim.Spec.Devices.Config = []resourceapi.DeviceClaimConfiguration{{DeviceConfiguration: resourceapi.DeviceConfiguration{Opaque: &resourceapi.OpaqueDeviceConfiguration{
		Driver: v1alpha1.DriverName, Parameters: runtime.RawExtension{Raw: []byte(`{"apiVersion": "celset.dev/v1alpha1", "kind": "CELDeviceConstraint", "name": "row", "expression": "true"}`)},
	}}}}
	upstream := configv1alpha1.DynamicResourcesCELArgs{Allocator: configv1alpha1.AllocatorUpstream}
	until := time.Now().Add(time.Hour)
	serving := func(constraints bool, until time.Time) served.Schedulers {
		return served.Schedulers{{Lease: "kube-system/l", Until: until, Constraints: constraints, Profiles: []served.Profile{
			{SchedulerName: "default-scheduler", Args: upstream}, {SchedulerName: "celset-scheduler"},
		}}}
	}
	for _, c := range []struct {
		name, scheduler     string
		schedulers          served.Schedulers
		err                 error
		refused, notChecked string
	}{
		{name: "served", scheduler: "celset-scheduler", schedulers: serving(true, until)},
		{name: "other scheduler", scheduler: "volcano", schedulers: serving(true, until), refused: `spec.schedulerName: no celset-scheduler has a profile "volcano", so constraints are not supported: use celset-scheduler`},
		{name: "profile without", scheduler: "default-scheduler", schedulers: serving(true, until), refused: `spec.schedulerName: profile "default-scheduler" has allocator: Upstream, which does not support constraints: use celset-scheduler`},
		{name: "gate", scheduler: "celset-scheduler", schedulers: serving(false, until), refused: "the feature gate DRACELDeviceConstraint is off in the scheduler with Lease kube-system/l: enable it"},
		{name: "expired", scheduler: "celset-scheduler", schedulers: serving(true, time.Now().Add(-2*time.Hour)), notChecked: "whether a scheduler is running: Lease kube-system/l expired 120m ago"},
		{name: "nothing published", scheduler: "celset-scheduler", refused: `no Lease in namespace kube-system has the profiles of a celset-scheduler, so constraints are not supported: start celset-scheduler, or set --scheduler-namespace to the namespace of its Lease`},
		{name: "misspelt", scheduler: "celset-schedular", schedulers: serving(true, until), refused: `spec.schedulerName: no celset-scheduler has a profile "celset-schedular", so constraints are not supported: use celset-scheduler; did you mean "celset-scheduler"?`},
		{name: "no rights", scheduler: "celset-scheduler", err: errors.New("leases is forbidden"), notChecked: `whether the scheduler "celset-scheduler" supports constraints: leases is forbidden`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s.Pods[0].Spec.SchedulerName = c.scheduler
			subject, err := s.Subject("pod/p", "ns")
			require.NoError(t, err)
			report := fit.Report{Nodes: []*explain.Explanation{{Node: "node-1", Fits: true}}}
			report.AddServed(s, subject, c.schedulers, "kube-system", c.err)
			require.Equal(t, c.refused == "", report.Fits())
			require.Equal(t, texts(c.refused), report.Refused)
			require.Equal(t, texts(c.notChecked), report.NotChecked)
		})
	}
	// A claim without constraints needs no celset-scheduler.
	claim.Spec.Devices.Constraints = nil
	subject, err := s.Subject("pod/p", "ns")
	require.NoError(t, err)
	report := fit.Report{}
	report.AddServed(s, subject, nil, "kube-system", errors.New("leases is forbidden"))
	require.Empty(t, report.NotChecked)
}

func texts(text string) []string {
	if text == "" {
		return nil
	}
	return []string{text}
}

// TestEvents checks that the report quotes the latest warning events, each message once.
func TestEvents(t *testing.T) {
	at := func(minute int, kind, message string) corev1.Event {
		return corev1.Event{Type: kind, Reason: "FailedScheduling", Message: message, LastTimestamp: metav1.NewTime(time.Unix(int64(60*minute), 0))}
	}
	s := fit.Scheduling{Quoted: []string{"PodScheduled is False (Unschedulable): no devices"}}
	s.AddEvents([]corev1.Event{
		at(1, corev1.EventTypeWarning, "oldest"), at(5, corev1.EventTypeWarning, "no devices"), at(4, corev1.EventTypeNormal, "normal"),
		at(3, corev1.EventTypeWarning, "newer"), at(2, corev1.EventTypeWarning, "older"), at(6, corev1.EventTypeWarning, "newest"),
	})
	require.Equal(t, []string{
		"PodScheduled is False (Unschedulable): no devices", "event FailedScheduling: newest", "event FailedScheduling: newer", "event FailedScheduling: older",
	}, s.Quoted)
}
