// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"archive/tar"
	"context"
	"encoding/base64"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	certutil "k8s.io/client-go/util/cert"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"

	"github.com/celset/celset/test/controlplane"
	"github.com/celset/celset/test/internal/env"
	"github.com/celset/celset/test/internal/helm"
	"github.com/celset/celset/test/internal/release"
	"github.com/celset/celset/test/internal/render"
	"github.com/celset/celset/test/realnode"
	"github.com/celset/celset/test/story"
)

// programs are the programs that the chart's pods run.
var programs = []string{"celset-scheduler", "celset-placement", "celset-webhook", "celset-topology-driver"}

// installed is a cluster with kube-scheduler and one node, on which the chart is installed.
type installed struct {
	*env.Lab
	node *realnode.Node
}

// TestChart installs the released chart, and runs the images of the release on a node with a kubelet and containerd. Only
// [hostNetwork] changes the released objects.
func TestChart(t *testing.T) {
	dist := filepath.Join(t.TempDir(), "dist")
	output, err := release.Build(dist)
	require.NoError(t, err, output)
	c := startInstalled(t)
	for _, program := range programs {
		require.NoError(t, c.node.ImportImages(t.Context(), archiveOf(t, filepath.Join(dist, "images", program))))
	}

	const system = "celset-system"
	certificate, key, err := certutil.GenerateSelfSignedCertKey("localhost", nil, nil)
	require.NoError(t, err)
	env.Create(t, c.Client().CoreV1().Namespaces(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: system}})
	env.Create(t, c.Client().CoreV1().Secrets(system), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "celset-webhook-tls"}, Type: corev1.SecretTypeTLS,
		Data: map[string][]byte{corev1.TLSCertKey: certificate, corev1.TLSPrivateKeyKey: key},
	})
	network := newHostNetwork(t, c.RESTConfig().Host, c.node.CDIDir())
	network.image = func(image string) {
		// When a node pulls an image, it also names the image by its digest.
		tagged, digest, found := strings.Cut(image, "@")
		require.True(t, found, image)
		require.NoError(t, c.node.TagImage(t.Context(), tagged, strings.TrimSuffix(tagged, ":"+release.Version)+"@"+digest))
	}
	for _, object := range released(t, dist,
		"scheduler.mode=second", "scheduler.replicas=1",
		"placement.enabled=true", "placement.crds=true", "placement.bindings=true", "placement.replicas=1",
		"webhook.enabled=true", "webhook.policy=true", "webhook.placements=true", "webhook.replicas=1",
		"webhook.certificates.from=secret", "webhook.certificates.caBundle="+base64.StdEncoding.EncodeToString(certificate),
		"topologyDriver.enabled=true", "topologyDriver.kubeletDir="+c.node.KubeletDir()) {
		manifest, err := network.adapt(t, object).MarshalJSON()
		require.NoError(t, err)
		// After a CRD is created, the API server takes a moment to serve the kind.
		env.Until(t, object.GetKind()+" "+object.GetName()+" is stored", func(context.Context) (bool, error) {
			err := c.apply(t, string(manifest))
			if meta.IsNoMatchError(err) {
				return false, nil
			}
			return err == nil, err
		})
	}
	for _, program := range programs {
		c.requireReady(t, program)
	}
	c.useDevices(t)
	c.usePlacements(t)
	for _, program := range programs {
		log := c.logOf(t, &c.podsOf(t, program)[0])
		require.NotEmpty(t, log, program)
		require.NotContains(t, strings.ToLower(log), "forbidden", program)
	}
}

// startInstalled starts the control plane and the node.
func startInstalled(t *testing.T) *installed {
	t.Helper()
	// This cleanup runs after the control plane has ended.
	dir := t.TempDir()
	t.Cleanup(func() { require.NoError(t, nothingLeft(dir)) })
	e := env.Start(t, controlplane.Options{SkipKwok: true, ServiceAccountAdmission: true, Users: []controlplane.User{env.KubeScheduler}}, controlplane.KubeScheduler)
	dir = e.DataDir()
	e.StartStock(t, controlplane.SchedulerOptions{User: env.KubeScheduler.Name})
	node, err := realnode.Start(context.WithoutCancel(t.Context()), e.ControlPlane, realnode.Options{
		Name: "worker-0", Dir: filepath.Join(e.DataDir(), "n"), Labels: map[string]string{"celset.dev/topology": "ring"},
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, node.Stop()) })
	return &installed{&env.Lab{Env: e, Namespace: namespace}, node}
}

// released returns the objects that helm renders from the released chart.
func released(t *testing.T, dist string, values ...string) []*unstructured.Unstructured {
	t.Helper()
	output, err := helm.Run(t, "template", "celset", filepath.Join(dist, "celset-"+strings.TrimPrefix(release.Version, "v")+".tgz"),
		"--namespace=kube-system", "--kube-version=1.37.2", "--set="+strings.Join(values, ","))
	require.NoError(t, err, output)
	require.Equal(t, len(programs), strings.Count(output, ":"+release.Version+"@sha256:"), "all images by their digests")
	objects, err := render.Decode([]byte(output))
	require.NoError(t, err)
	return objects
}

// archiveOf packs a folder into an archive, and returns the archive's path.
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

func (c *installed) apply(t *testing.T, manifest string) error {
	t.Helper()
	_, err := controlplane.Apply(t.Context(), c.RESTConfig(), []byte(manifest), controlplane.ApplyOptions{})
	return err
}

func (c *installed) podsOf(t *testing.T, program string) []corev1.Pod {
	t.Helper()
	list, err := c.Client().CoreV1().Pods(metav1.NamespaceAll).List(t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=" + program})
	require.NoError(t, err)
	return list.Items
}

func (c *installed) logOf(t *testing.T, pod *corev1.Pod) string {
	t.Helper()
	log, err := c.Client().CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{}).DoRaw(t.Context())
	if err != nil {
		return err.Error()
	}
	return string(log)
}

// requireReady waits until the only pod of a program is ready, with the image of the release.
func (c *installed) requireReady(t *testing.T, program string) {
	t.Helper()
	var found []corev1.Pod
	env.Eventually(t, program+" is ready", func(context.Context) (string, error) {
		if found = c.podsOf(t, program); len(found) == 1 && podutil.IsPodReady(&found[0]) {
			return "", nil
		}
		complaint := fmt.Sprintf("%d pods", len(found))
		for _, pod := range found {
			complaint += fmt.Sprintf("\n%s: %+v\n%s", pod.Name, pod.Status, c.logOf(t, &pod))
		}
		return complaint, nil
	})
	require.Contains(t, found[0].Spec.Containers[0].Image, release.Registry+"/"+program+":"+release.Version+"@sha256:")
	require.Zero(t, found[0].Status.ContainerStatuses[0].RestartCount)
	require.True(t, *found[0].Spec.Containers[0].SecurityContext.ReadOnlyRootFilesystem)
}

// useDevices checks that the scheduler allocates devices of the driver to a claim, and that the webhook and the admission
// policy reject invalid claims.
func (c *installed) useDevices(t *testing.T) {
	const driver = "mla.example.com"
	env.Until(t, "8 devices", func(ctx context.Context) (bool, error) {
		list, err := c.Client().ResourceV1().ResourceSlices().List(ctx, metav1.ListOptions{})
		return err == nil && len(list.Items) == 1 && len(list.Items[0].Spec.Devices) == 8, err
	})
	mla := env.Request("mla", driver, 4)
	c.CreateClaim(t, "connected", mla, env.Constrained("ring4", env.Contiguous(driver, 4)))
	pod := env.Pod("connected", env.CelsetProfile, "connected")
	realnode.Adapt(&pod.Spec)
	c.CreatePodAsIs(t, pod)
	c.EventuallyPod(t, "connected", "Running", func(_ context.Context, pod *corev1.Pod) (bool, error) {
		return pod.Status.Phase == corev1.PodRunning, nil
	})
	require.True(t, story.Ring().Holds(slices.Sorted(slices.Values(c.DevicesOf(t, "connected")))))

	refused := func(what, want string, part env.Part) {
		t.Helper()
		claim := env.Claim("refused", mla, part)
		// After the configuration is created, the API server takes a moment until it calls the webhook.
		env.Eventually(t, what, func(ctx context.Context) (string, error) {
			_, err := c.Client().ResourceV1().ResourceClaims(namespace).Create(ctx, claim, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			if err == nil || !strings.Contains(err.Error(), want) {
				return fmt.Sprint(err), nil
			}
			return "", nil
		})
	}
	refused("the webhook is asked", "undefined field 'diver'", env.Constrained("ring4", "devices.all(d, d.diver == 'mla')"))
	refused("the policy is asked", "ValidatingAdmissionPolicy 'celset-resourceclaims'", env.Configure(env.Parameters(map[string]string{
		"apiVersion": "celset.dev/v1alpha1", "kind": "CELDeviceConstraint", "name": "ring4", "expression": " ",
	})))
}

// usePlacements checks that celset-placement binds a ManagedClusterSet and decides a Placement, and that the webhook rejects an
// invalid Placement.
func (c *installed) usePlacements(t *testing.T) {
	fleet, err := os.ReadFile(filepath.Join("testdata", "fleet.yaml"))
	require.NoError(t, err)
	c.ApplyText(t, string(fleet))
	place := func(name, annotation, expression string) error {
		return c.apply(t, fmt.Sprintf(`
apiVersion: cluster.open-cluster-management.io/v1beta1
kind: Placement
metadata: {name: %s, namespace: team, annotations: {celset.dev/placement: %q}}
spec: {predicates: [{requiredClusterSelector: {celSelector: {celExpressions: [%q]}}}]}
`, name, annotation, expression))
	}
	require.NoError(t, place("annotated", "true", `managedCluster.metadata.name == "paris"`))
	client, err := dynamic.NewForConfig(c.RESTConfig())
	require.NoError(t, err)
	decisions := client.Resource(schema.GroupVersionResource{Group: "cluster.open-cluster-management.io", Version: "v1beta1", Resource: "placementdecisions"}).Namespace("team")
	env.Until(t, "it is decided", func(ctx context.Context) (bool, error) {
		list, err := decisions.List(ctx, metav1.ListOptions{})
		if err != nil || len(list.Items) != 1 {
			return false, err
		}
		written, _, err := unstructured.NestedSlice(list.Items[0].Object, "status", "decisions")
		return len(written) == 1 && written[0].(map[string]any)["clusterName"] == "paris", err
	})
	require.ErrorContains(t, place("mistaken", "true", "managedCluster."), `admission webhook "placements.celset.dev" denied the request`)
	require.NoError(t, place("of-others", "false", "managedCluster."), "celset does not decide it")
}

// hostNetwork changes objects so that pods use the machine's network, because package realnode has no pod network. Pods then need
// different ports and the address of the API server. The API server needs the address of the webhook. CDI specs go into the
// node's directory.
type hostNetwork struct {
	apiServer *url.URL
	cdiDir    string
	// image is a function that is called with the image of each pod.
	image func(string)
	// ports maps a program and the name of a container port to a free port of the machine.
	ports map[string]map[string]int
}

// portFlags maps a program and the name of a container port to the flag that sets the port.
var portFlags = map[string]map[string]string{
	"celset-scheduler":       {"https": "--secure-port=%d"},
	"celset-placement":       {"health": "--health-probe-bind-address=:%d", "metrics": "--metrics-bind-address=:%d"},
	"celset-webhook":         {"probes": "--health-probe-bind-address=:%d", "metrics": "--metrics-bind-address=:%d", "webhook": "--webhook-bind-address=:%d"},
	"celset-topology-driver": {"health": "--health-probe-bind-address=:%d", "metrics": "--metrics-bind-address=:%d"},
}

func newHostNetwork(t *testing.T, apiServer, cdiDir string) *hostNetwork {
	t.Helper()
	address, err := url.Parse(apiServer)
	require.NoError(t, err)
	network := &hostNetwork{apiServer: address, cdiDir: cdiDir, ports: map[string]map[string]int{}}
	count := 0
	for _, flags := range portFlags {
		count += len(flags)
	}
	free, err := controlplane.FreePorts(count)
	require.NoError(t, err)
	for program, flags := range portFlags {
		network.ports[program] = map[string]int{}
		for name := range flags {
			network.ports[program][name], free = free[0], free[1:]
		}
	}
	return network
}

// adapt returns the object with the changes of hostNetwork. Only objects that run pods or call webhooks are changed.
func (n *hostNetwork) adapt(t *testing.T, object *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	switch object.GetKind() {
	case "Deployment", "DaemonSet":
		fields, found, err := unstructured.NestedMap(object.Object, "spec", "template")
		require.NoError(t, err)
		require.True(t, found)
		var template corev1.PodTemplateSpec
		convert(t, fields, &template)
		n.adaptPod(t, &template.Spec)
		require.NoError(t, unstructured.SetNestedMap(object.Object, unstructuredOf(t, &template), "spec", "template"))
	case "ValidatingWebhookConfiguration":
		var configuration admissionv1.ValidatingWebhookConfiguration
		convert(t, object.Object, &configuration)
		for i := range configuration.Webhooks {
			called := &configuration.Webhooks[i].ClientConfig
			require.Equal(t, "celset-webhook", called.Service.Name)
			address := fmt.Sprintf("https://localhost:%d%s", n.ports["celset-webhook"]["webhook"], *called.Service.Path)
			called.URL, called.Service = &address, nil
		}
		object.Object = unstructuredOf(t, &configuration)
	}
	return object
}

func (n *hostNetwork) adaptPod(t *testing.T, pod *corev1.PodSpec) {
	t.Helper()
	pod.HostNetwork = true
	container := &pod.Containers[0]
	n.image(container.Image)
	container.Env = append(container.Env,
		corev1.EnvVar{Name: "KUBERNETES_SERVICE_HOST", Value: n.apiServer.Hostname()},
		corev1.EnvVar{Name: "KUBERNETES_SERVICE_PORT", Value: n.apiServer.Port()})
	flags := portFlags[container.Name]
	require.Len(t, container.Ports, len(flags))
	for i := range container.Ports {
		declared := &container.Ports[i]
		port := n.ports[container.Name][declared.Name]
		require.NotZero(t, port, "%s of %s", declared.Name, container.Name)
		declared.ContainerPort = int32(port)
		container.Args = append(container.Args, fmt.Sprintf(flags[declared.Name], port))
	}
	for _, volume := range pod.Volumes {
		if volume.Name == "cdi" {
			volume.HostPath.Path = n.cdiDir
		}
	}
}

func convert(t *testing.T, fields map[string]any, object any) {
	t.Helper()
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(fields, object, true))
}

func unstructuredOf(t *testing.T, object any) map[string]any {
	t.Helper()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	require.NoError(t, err)
	return fields
}
