// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	draclient "k8s.io/dynamic-resource-allocation/client"

	"github.com/celset/celset/internal/clusterstate/watching"
	"github.com/celset/celset/test/controlplane"
	"github.com/celset/celset/test/internal/env"
)

// TestOldVersions follows an API server that has resource.k8s.io only in an old version, and is no hub.
func TestOldVersions(t *testing.T) {
	for _, version := range []string{"v1beta1", "v1beta2"} {
		t.Run(version, func(t *testing.T) {
			e := env.Start(t, controlplane.Options{
				SkipKwok: true, SkipControllerManager: true,
				APIServerArgs: []string{"--runtime-config=resource.k8s.io/v1=false,resource.k8s.io/" + version + "=true"},
			})
			hub := &env.Hub{Env: e}
			client, err := kubernetes.NewForConfig(e.RESTConfig())
			require.NoError(t, err)
			dra := draclient.New(client)
			create := func() {
				t.Helper()
				_, err := dra.ResourceClaims("default").Create(t.Context(), &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{GenerateName: "c-"}, Spec: claimSpec(1)}, metav1.CreateOptions{})
				require.NoError(t, err)
			}
			_, err = dra.DeviceClasses().Create(t.Context(), classOf(driver), metav1.CreateOptions{})
			require.NoError(t, err)
			_, err = dra.ResourceSlices().Create(t.Context(), sliceOf("n", 2), metav1.CreateOptions{})
			require.NoError(t, err)
			create()
			w := follow(t, hub, "", watching.Options{})
			create()
			env.Eventually(t, "the objects are the same", func(ctx context.Context) (string, error) { return difference(ctx, hub, w, "") })
			objects := w.Objects()
			require.Len(t, objects.Claims, 2)
			require.Len(t, objects.Slices, 1)
			require.Equal(t, "gpu-1", objects.Slices[0].Spec.Devices[1].Name)
			require.Empty(t, objects.Warnings)
		})
	}
}
