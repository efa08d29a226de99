// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package indoubt

import (
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/clock"
)

// Claims of a pod that is bound are neither changed nor deleted, those that were made in vain are.
func TestKeeping(t *testing.T) {
	claim := func(name string) *resourceapi.ResourceClaim {
		return &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name), Finalizers: []string{resourceapi.Finalizer}}}
	}
	for name, kept := range map[string]bool{"kept": true, "vain": false} {
		t.Run(name, func(t *testing.T) {
			api := fake.NewClientset(claim("kept"), claim("vain"))
			writes := New(api, nil, nil, clock.RealClock{}, nil)
			t.Cleanup(writes.queue.ShutDown)
			claims := writes.Client().ResourceV1().ResourceClaims("default")
			ctx := Keeping(t.Context(), sets.New("kept"))
			changed := claim(name)
			changed.Finalizers = nil
			patch := []byte(`{"metadata": {"labels": {"a": "b"}}}`)
			_, updated := claims.Update(ctx, changed, metav1.UpdateOptions{})
			_, patched := claims.Patch(ctx, name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
			_, written := claims.UpdateStatus(ctx, changed, metav1.UpdateOptions{})
			deleted := claims.Delete(ctx, name, metav1.DeleteOptions{})
			list, err := api.ResourceV1().ResourceClaims("default").List(t.Context(), metav1.ListOptions{})
			require.NoError(t, err)
			for _, err := range []error{updated, patched, written, deleted} {
				if kept {
					require.EqualError(t, err, "claim kept is kept: the pod that it is for is bound")
				} else {
					require.NoError(t, err)
				}
			}
			if !kept {
				require.Len(t, list.Items, 1)
				return
			}
			require.Len(t, list.Items, 2)
			require.Equal(t, *claim("kept"), list.Items[0])
			_, err = claims.Update(t.Context(), changed, metav1.UpdateOptions{})
			require.NoError(t, err, "whoever does not know the pod as bound may")
		})
	}
}
