// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestResolveTargets(t *testing.T) {
	root, err := ModuleRoot()
	require.NoError(t, err)
	targets, err := resolveTargets(t.Context(), root, []string{Etcd, KubeAPIServer, Kwok, "devcluster"})
	require.NoError(t, err)
	require.Len(t, targets, 4)
	require.Equal(t, target{name: Etcd, pkg: "go.etcd.io/etcd/server/v3"}, targets[0])
	require.Equal(t, "k8s.io/kubernetes/cmd/kube-apiserver", targets[1].pkg)
	require.Regexp(t, `-X k8s\.io/component-base/version\.gitVersion=v1\.\d+\.\d+ `, targets[1].stamp)
	require.Equal(t, "hack/tools/kwok", targets[2].module)
	require.Equal(t, target{name: "devcluster", pkg: "./cmd/devcluster"}, targets[3])

	stamp := targets[1].stamp
	targets, err = resolveTargets(t.Context(), root, []string{CelsetScheduler})
	require.NoError(t, err)
	require.Equal(t, target{name: CelsetScheduler, pkg: "./cmd/celset-scheduler", stamp: stamp}, targets[0], "it is a kube-scheduler")

	targets, err = resolveTargets(t.Context(), root, []string{"kube-apiserver-1.34"})
	require.NoError(t, err)
	require.Contains(t, targets[0].stamp, "gitVersion=v1.34.")

	for name, want := range map[string]string{
		"no-such-command": "neither a known dependency nor a command",
		"../cmd":          "not the name of a binary",
		"..":              "not the name of a binary",
		"":                "not the name of a binary",
	} {
		_, err := resolveTargets(t.Context(), root, []string{name})
		require.ErrorContains(t, err, want, "name %q", name)
	}
}

func TestAllBinaries(t *testing.T) {
	root, err := ModuleRoot()
	require.NoError(t, err)
	names, err := allBinaries(root)
	require.NoError(t, err)
	require.Subset(t, names, []string{Etcd, KubeAPIServer, KubeControllerManager, Kubectl, Kwok, "devcluster"})
	require.Subset(t, NodeBinaries(), []string{Kubelet, Containerd, ContainerdShim, Runc, Workload})
	for _, name := range NodeBinaries() {
		require.NotContains(t, names, name, "only Linux can build it")
	}
}

func TestVersionStamp(t *testing.T) {
	stamp := VersionStamp("v1.37.1")
	for _, flag := range []string{"gitVersion=v1.37.1", "gitMajor=1", "gitMinor=37"} {
		require.Contains(t, stamp, "-X k8s.io/component-base/version."+flag)
		require.Contains(t, stamp, "-X k8s.io/client-go/pkg/version."+flag)
	}
}
