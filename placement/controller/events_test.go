// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
)

// TestEventsAreRecordedLater checks that an event is sent later, with the contents that its objects had when it was recorded.
func TestEventsAreRecordedLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		scheme := runtime.NewScheme()
		require.NoError(t, AddToScheme(scheme))
		to := events.NewFakeRecorder(10)
		late := lateEvents{to, scheme}
		object := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "p", UID: "u"}}
		late.Eventf(object, nil, corev1.EventTypeNormal, "R", "A", "%s of 100%%", object.Name)
		object.Name = "q"
		time.Sleep(eventsAfter - time.Nanosecond)
		synctest.Wait()
		require.Empty(t, to.Events)
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		require.Equal(t, "Normal R p of 100%", <-to.Events)
	})
}
