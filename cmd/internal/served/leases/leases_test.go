// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package leases_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"

	configv1alpha1 "github.com/celset/celset/apis/config/v1alpha1"
	"github.com/celset/celset/cmd/internal/served"
	"github.com/celset/celset/cmd/internal/served/leases"
)

// TestPublish checks that Read returns what was published, with defaults for arguments that an older scheduler lacks.
func TestPublish(t *testing.T) {
	renewed := metav1.NewMicroTime(time.Unix(1000, 0))
	lease := func(name string) *coordinationv1.Lease {
		return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name}, Spec: coordinationv1.LeaseSpec{
			HolderIdentity: ptr.To("a"), RenewTime: &renewed, LeaseDurationSeconds: ptr.To[int32](15),
		}}
	}
	client := fake.NewClientset(lease("celset-scheduler"), lease("other"))
	annotation, err := served.Encode(&served.Scheduler{Version: "v1", Constraints: true, Profiles: []served.Profile{
		{SchedulerName: "one", Args: configv1alpha1.DynamicResourcesCELArgs{Budget: &configv1alpha1.Budget{Steps: ptr.To[int64](7)}}},
		{SchedulerName: "plain", Args: configv1alpha1.DynamicResourcesCELArgs{Allocator: configv1alpha1.AllocatorUpstream}},
	}})
	require.NoError(t, err)
	require.NoError(t, leases.Publish(t.Context(), client, "kube-system", "celset-scheduler", annotation))
	written := len(client.Actions())
	require.NoError(t, leases.Publish(t.Context(), client, "kube-system", "celset-scheduler", annotation))
	require.Len(t, client.Actions(), written+1, "nothing is written again")

	schedulers, err := leases.Read(t.Context(), client, "kube-system")
	require.NoError(t, err)
	require.Len(t, schedulers, 1)
	require.Equal(t, time.Unix(1015, 0), schedulers[0].Until)
	require.Equal(t, []string{"one"}, schedulers.Names())
	scheduler, profile := schedulers.Profile("one")
	require.Equal(t, "kube-system/celset-scheduler", scheduler.Lease)
	require.Equal(t, int64(7), *profile.Args.Budget.Steps)
	require.Equal(t, configv1alpha1.DefaultBudgetCost, *profile.Args.Budget.Cost)
	_, profile = schedulers.Profile("two")
	require.Nil(t, profile)

	require.NoError(t, leases.Publish(t.Context(), client, "kube-system", "other", "{"))
	_, err = leases.Read(t.Context(), client, "kube-system")
	require.ErrorContains(t, err, "lease kube-system/other: annotation celset.dev/serves: unexpected end of JSON input")
}
