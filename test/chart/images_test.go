// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package chart

import (
	"archive/tar"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"

	"github.com/celset/celset/internal/controlplane"
	"github.com/celset/celset/internal/realnode"
	"github.com/celset/celset/internal/testing/helm"
	"github.com/celset/celset/internal/testing/release"
	"github.com/celset/celset/internal/testing/render"
)

const (
	// e2eEnv has the tests run that need a kubelet and containerd.
	e2eEnv = "CELSET_E2E"

	// worker is the one node.
	worker = "worker-0"
)

// TestImages runs the images of a release on a node with a kubelet and containerd, as pods of the
// released chart. What is not as released is in [hostNetwork].
func TestImages(t *testing.T) {
	if os.Getenv(e2eEnv) == "" {
		t.Skipf("set %s, or run \"make e2e\"", e2eEnv)
	}
	requireAvailable(t, realnode.Unavailable())
	dist := buildRelease(t)
	c, node := startWithNode(t)
	for _, program := range programs {
		require.NoError(t, node.ImportImages(t.Context(), archiveOf(t, filepath.Join(dist, "images", program))))
	}

	certificate, key := newCertificate(t, "localhost")
	c.makeNamespace(t, certificate, key)
	objects := c.released(t, dist, append(allParts(certificate), "topologyDriver.kubeletDir="+node.KubeletDir(),
		"scheduler.mode=second", "scheduler.replicas=1", "placement.replicas=1", "webhook.replicas=1")...)
	network := newHostNetwork(t, c.RESTConfig().Host, node.CDIDir())
	network.image = func(image string) {
		// A node that pulls an image knows it by its digest.
		tagged, digest, found := strings.Cut(image, "@")
		require.True(t, found, image)
		require.NoError(t, node.TagImage(t.Context(), tagged, strings.TrimSuffix(tagged, ":"+release.Version)+"@"+digest))
	}
	for _, object := range objects {
		manifest, err := network.adapt(t, object).MarshalJSON()
		require.NoError(t, err)
		// Of kinds that have just been defined the API server knows after a moment.
		eventually(t, object.GetKind()+" "+object.GetName()+" is stored", func(context.Context) (bool, error) {
			err := c.apply(t, string(manifest))
			return err == nil, ignoreUnknownKind(err)
		})
	}
	for _, program := range programs {
		c.requireReady(t, program)
	}

	c.requireDevices(t, 8)
	require.NoError(t, c.apply(t, claim("connected", connected)))
	pod := podOf("connected", "celset-scheduler", "connected")
	realnode.Adapt(&pod.Spec)
	_, err := c.Client().CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{})
	require.NoError(t, err)
	eventually(t, "a pod with connected devices runs", func(ctx context.Context) (bool, error) {
		pod, err := c.Client().CoreV1().Pods(namespace).Get(ctx, "connected", metav1.GetOptions{})
		return err == nil && pod.Status.Phase == corev1.PodRunning, err
	})
	c.requireConnected(t, "connected")
	c.requireMistakeRefused(t)
	c.usePlacements(t)
	for _, program := range programs {
		c.requireNotForbidden(t, program)
	}
}

func ignoreUnknownKind(err error) error {
	if meta.IsNoMatchError(err) {
		return nil
	}
	return err
}

// requireReady waits until the one pod of a program is ready, with the image of the release.
func (c *cluster) requireReady(t *testing.T, program string) {
	t.Helper()
	var found []corev1.Pod
	if !assert.NoError(t, wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		found = c.pods(t, program)
		return len(found) == 1 && podutil.IsPodReady(&found[0]), nil
	}), program) {
		for _, pod := range found {
			t.Logf("%s: %+v", pod.Name, pod.Status)
			t.Log(c.logOf(t, &pod))
		}
		t.FailNow()
	}
	status := found[0].Status.ContainerStatuses[0]
	require.Contains(t, found[0].Spec.Containers[0].Image, release.Registry+"/"+program+":"+release.Version+"@sha256:")
	require.Zero(t, status.RestartCount)
	require.True(t, *found[0].Spec.Containers[0].SecurityContext.ReadOnlyRootFilesystem)
}

// requireNotForbidden reads the log of a program by way of the kubelet.
func (c *cluster) requireNotForbidden(t *testing.T, program string) {
	t.Helper()
	pods := c.pods(t, program)
	require.Len(t, pods, 1)
	log := c.logOf(t, &pods[0])
	require.NotEmpty(t, log, program)
	require.NotContains(t, strings.ToLower(log), "forbidden", program)
}

func (c *cluster) logOf(t *testing.T, pod *corev1.Pod) string {
	t.Helper()
	log, err := c.Client().CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{}).DoRaw(t.Context())
	if err != nil {
		return err.Error()
	}
	return string(log)
}

// buildRelease returns the folder of a release with all images.
func buildRelease(t *testing.T) string {
	t.Helper()
	dist := filepath.Join(t.TempDir(), "dist")
	output, err := release.Build(dist)
	require.NoError(t, err, output)
	return dist
}

// archiveOf packs a folder.
func archiveOf(t *testing.T, folder string) string {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "images.tar"))
	require.NoError(t, err)
	defer file.Close()
	archive := tar.NewWriter(file)
	require.NoError(t, archive.AddFS(os.DirFS(folder)))
	require.NoError(t, archive.Close())
	return file.Name()
}

// startWithNode starts a control plane with kube-scheduler, and a node that runs containers.
func startWithNode(t *testing.T) (*cluster, *realnode.Node) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	_, err := controlplane.Build(ctx, "", t.Output(), append(controlplane.NodeBinaries(), controlplane.KubeScheduler)...)
	require.NoError(t, err)
	// Short ones: there are sockets below, whose paths the kernel limits.
	dir, err := os.MkdirTemp("", "celset-")
	require.NoError(t, err)
	t.Cleanup(func() {
		left, err := realnode.Leftovers(dir)
		require.NoError(t, err)
		require.Empty(t, left)
		if t.Failed() {
			t.Logf("logs are in %s", dir)
			return
		}
		require.NoError(t, os.RemoveAll(dir))
	})
	cp, err := controlplane.Start(ctx, controlplane.Options{
		DataDir: dir, Progress: t.Output(), SkipKwok: true, ServiceAccountAdmission: true, Users: []controlplane.User{{Name: stock}},
	})
	require.NoError(t, err)
	t.Cleanup(cp.Stop)
	c := &cluster{ControlPlane: cp}
	c.startStock(t)
	node, err := realnode.Start(ctx, cp, realnode.Options{
		Name: worker, Dir: filepath.Join(dir, "n"), Labels: map[string]string{"celset.dev/topology": "ring"},
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, node.Stop()) })
	return c, node
}

// released are the objects of the released chart.
func (c *cluster) released(t *testing.T, dist string, values ...string) []*unstructured.Unstructured {
	t.Helper()
	output, err := helm.Run(t, "template", releaseName, filepath.Join(dist, "celset-"+strings.TrimPrefix(release.Version, "v")+".tgz"),
		"--namespace=kube-system", "--kube-version=1.37.1", "--set="+strings.Join(values, ","))
	require.NoError(t, err, output)
	require.Equal(t, len(programs), strings.Count(output, ":"+release.Version+"@sha256:"), "all images by their digests")
	objects, err := render.Decode([]byte(output))
	require.NoError(t, err)
	return objects
}
