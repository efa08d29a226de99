// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/cmd/internal/served"
)

// TestRenew checks that a scheduler without leader election keeps its Lease current while it runs, and that another scheduler
// can still take the Lease.
func TestRenew(t *testing.T) {
	client := fake.NewClientset()
	annotation, err := served.Encode(&served.Scheduler{Constraints: true, Profiles: []served.Profile{{SchedulerName: "mine"}}})
	require.NoError(t, err)
	now := time.Unix(1000, 0)
	at := func(seconds int) error {
		return renew(t.Context(), client, "kube-system", "celset-scheduler", annotation, now.Add(time.Duration(seconds)*time.Second))
	}
	require.NoError(t, at(0))
	require.NoError(t, at(20))
	schedulers, err := Read(t.Context(), client, "kube-system")
	require.NoError(t, err)
	require.Equal(t, []string{"mine"}, schedulers.Names())
	require.Equal(t, now.Add(80*time.Second), schedulers[0].Until)

	leases := client.CoordinationV1().Leases("kube-system")
	lease, err := leases.Get(t.Context(), "celset-scheduler", metav1.GetOptions{})
	require.NoError(t, err)
	require.Nil(t, lease.Spec.HolderIdentity, "a scheduler that elects a leader takes it at once")
	lease.Spec.HolderIdentity = ptr.To("elected")
	_, err = leases.Update(t.Context(), lease, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.EqualError(t, at(40), `lease kube-system/celset-scheduler is in use by another scheduler (holder "elected")`)
	require.NoError(t, at(81), "the other scheduler has ended")

	annotation = "{}"
	require.ErrorContains(t, at(82), "is in use by another scheduler")
}
