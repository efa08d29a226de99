// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package preempt

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// TestEvictingClient checks which conflicts become NotFound: only those after which no pod has the victim's name, or a pod with
// another UID has the name.
func TestEvictingClient(t *testing.T) {
	victim := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "victim", UID: "old"}}
	for name, test := range map[string]struct {
		stored *v1.Pod
		isGone bool
	}{
		"the victim":        {stored: victim},
		"its successor":     {stored: &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "victim", UID: "new"}}, isGone: true},
		"no pod any longer": {isGone: true},
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset()
			if test.stored != nil {
				require.NoError(t, client.Tracker().Add(test.stored))
			}
			var sent []clienttesting.Action
			refuse := func(action clienttesting.Action) (bool, runtime.Object, error) {
				sent = append(sent, action)
				return true, nil, apierrors.NewConflict(v1.Resource("pods"), "victim", nil)
			}
			client.PrependReactor("delete", "pods", refuse)
			client.PrependReactor("patch", "pods", refuse)
			pods := evictingClient{client}.CoreV1().Pods("default")
			ctx := context.WithValue(t.Context(), victimInContext{}, victim)

			_, patched := pods.Patch(ctx, "victim", types.StrategicMergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}},"status":{"phase":"Failed"}}`), metav1.PatchOptions{}, "status")
			deleted := pods.Delete(ctx, "victim", metav1.DeleteOptions{})
			for _, err := range []error{patched, deleted} {
				require.Equal(t, test.isGone, apierrors.IsNotFound(err))
				require.Equal(t, !test.isGone, apierrors.IsConflict(err))
			}
			require.Len(t, sent, 2)
			require.JSONEq(t, `{"metadata":{"uid":"old","labels":{"a":"b"}},"status":{"phase":"Failed"}}`, string(sent[0].(clienttesting.PatchAction).GetPatch()))
			preconditions := sent[1].(clienttesting.DeleteActionImpl).DeleteOptions.Preconditions
			require.NotNil(t, preconditions)
			require.Equal(t, types.UID("old"), *preconditions.UID)

			// Requests outside of an eviction are sent unchanged.
			require.True(t, apierrors.IsConflict(pods.Delete(t.Context(), "victim", metav1.DeleteOptions{})))
			require.True(t, apierrors.IsConflict(pods.Delete(ctx, "other", metav1.DeleteOptions{})))
			require.Nil(t, sent[3].(clienttesting.DeleteActionImpl).DeleteOptions.Preconditions)
		})
	}
}
