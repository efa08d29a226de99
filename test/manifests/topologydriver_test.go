// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	drapb "k8s.io/kubelet/pkg/apis/dra/v1"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/test/internal/env"
	"github.com/celset/celset/test/internal/render"
)

const (
	// driverNamespace is the namespace of the topology driver.
	driverNamespace = "celset-topology-driver"
	nodeNameKey     = "authentication.kubernetes.io/node-name"
)

// installDriver creates the overlay's RBAC rights and admission policy, and returns the flags of all its pods.
func (s *apiServer) installDriver(t *testing.T, overlay string) (args []string) {
	t.Helper()
	objects := rendered(t, "overlays/"+overlay)
	for _, object := range objects {
		s.ensureNamespace(t, object)
		if isAboutRights(object) || object.GroupVersionKind().Group == "admissionregistration.k8s.io" {
			s.store(t, object.Object)
		}
	}
	args, err := render.Args(find(t, objects, "DaemonSet", "celset-topology-driver"))
	require.NoError(t, err)
	return args
}

// onNode returns a client configuration that impersonates a driver's pod on the node. If node is empty, it impersonates a pod
// without a node.
func (s *apiServer) onNode(node string) *rest.Config {
	config := s.RESTConfig()
	config.Impersonate = rest.ImpersonationConfig{UserName: env.TopologyDriver.Name, Groups: []string{"system:serviceaccounts", "system:authenticated"}}
	if node != "" {
		config.Impersonate.Extra = map[string][]string{nodeNameKey: {node}}
	}
	return config
}

// kubeconfigOnNode writes the client configuration of onNode to a kubeconfig file, and returns the path of the file.
func (s *apiServer) kubeconfigOnNode(t *testing.T, node string) string {
	t.Helper()
	config := s.onNode(node)
	content := clientcmdapi.NewConfig()
	content.CurrentContext = "node"
	content.Contexts["node"] = &clientcmdapi.Context{Cluster: "cluster", AuthInfo: "pod"}
	content.Clusters["cluster"] = &clientcmdapi.Cluster{
		Server: config.Host, CertificateAuthority: config.CAFile, CertificateAuthorityData: config.CAData,
	}
	content.AuthInfos["pod"] = &clientcmdapi.AuthInfo{
		Token: config.BearerToken, TokenFile: config.BearerTokenFile,
		ClientCertificate: config.CertFile, ClientCertificateData: config.CertData, ClientKey: config.KeyFile, ClientKeyData: config.KeyData,
		Impersonate: config.Impersonate.UserName, ImpersonateGroups: config.Impersonate.Groups, ImpersonateUserExtra: config.Impersonate.Extra,
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(*content, path))
	return path
}

// createNode creates a node. After the test it deletes the node and the node's ResourceSlices.
func (s *apiServer) createNode(t *testing.T, name string) {
	t.Helper()
	nodes := s.Client().CoreV1().Nodes()
	_, err := nodes.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		require.NoError(t, nodes.Delete(ctx, name, metav1.DeleteOptions{}))
		require.NoError(t, s.Client().ResourceV1().ResourceSlices().DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{FieldSelector: "spec.nodeName=" + name}))
	})
}

// TestTopologyDriverRuns runs the driver with the flags of the rendered DaemonSets and with exactly the rendered RBAC rights.
// The test acts as the kubelet. The API server must forbid no request.
func TestTopologyDriverRuns(t *testing.T) {
	server := server(t)
	binary := env.Program(t, "celset-topology-driver")
	for overlay, test := range map[string]struct {
		driver, device string
		devices        int
	}{
		"topology-driver-ring": {"mla.example.com", "mla-3", 8},
		"topology-driver-mesh": {"mesh.example.com", "mesh-3", 16},
	} {
		t.Run(overlay, func(t *testing.T) {
			server.createNode(t, overlay)
			args := server.installDriver(t, overlay)
			// t.TempDir is unsuitable, because its path may be too long for a socket.
			dir, err := os.MkdirTemp("", "celset-")
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })

			var log bytes.Buffer
			command := exec.CommandContext(t.Context(), binary, append(args, "--kubeconfig="+server.kubeconfigOnNode(t, overlay),
				"--node-name="+overlay, "--kubelet-root-dir="+dir, "--cdi-dir="+filepath.Join(dir, "cdi"), "--health-probe-bind-address=0", "--metrics-bind-address=0")...)
			command.Stdout, command.Stderr = &log, &log
			require.NoError(t, command.Start())
			published := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
				slices, err := server.Client().ResourceV1().ResourceSlices().List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + overlay})
				return err == nil && len(slices.Items) == 1 && slices.Items[0].Spec.Driver == test.driver && len(slices.Items[0].Spec.Devices) == test.devices, nil
			})
			message := ""
			if published == nil {
				message = server.prepareOne(t, filepath.Join(dir, "plugins", test.driver, "dra.sock"), overlay, test.driver, test.device)
			}
			require.NoError(t, command.Process.Signal(syscall.SIGTERM))
			require.NoError(t, command.Wait(), &log)
			require.NoError(t, published, &log)
			require.Empty(t, message)
			require.NotContains(t, log.String(), "forbidden", "the overlay gives all rights that it takes")
			specs, err := filepath.Glob(filepath.Join(dir, "cdi", test.driver+"-device_*.json"))
			require.NoError(t, err)
			require.Len(t, specs, 1)
		})
	}
}

// prepareOne creates an allocated claim for one device, and makes the driver prepare it. It returns the driver's error message.
func (s *apiServer) prepareOne(t *testing.T, socket, node, driver, device string) (message string) {
	t.Helper()
	claims := s.Client().ResourceV1().ResourceClaims(metav1.NamespaceDefault)
	claim, err := claims.Create(t.Context(), &resourceapi.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Name: node},
		Spec: resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{Requests: []resourceapi.DeviceRequest{{
			Name: "one", Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: driver},
		}}}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	claim.Status.Allocation = &resourceapi.AllocationResult{Devices: resourceapi.DeviceAllocationResult{
		Results: []resourceapi.DeviceRequestAllocationResult{{Request: "one", Driver: driver, Pool: node, Device: device}},
	}}
	claim, err = claims.UpdateStatus(t.Context(), claim, metav1.UpdateOptions{})
	require.NoError(t, err)
	connection, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer func() { require.NoError(t, connection.Close()) }()
	response, err := drapb.NewDRAPluginClient(connection).NodePrepareResources(t.Context(), &drapb.NodePrepareResourcesRequest{
		Claims: []*drapb.Claim{{Namespace: claim.Namespace, Name: claim.Name, Uid: string(claim.UID)}},
	})
	if err != nil {
		return err.Error()
	}
	return response.Claims[string(claim.UID)].Error
}

// TestPolicyOfTheTopologyDriver checks that the admission policy allows a driver to write only ResourceSlices of its own node.
func TestPolicyOfTheTopologyDriver(t *testing.T) {
	server := server(t)
	server.installDriver(t, "topology-driver-ring")
	server.createNode(t, "mine")
	server.createNode(t, "other")
	slice := func(node *string) *resourceapi.ResourceSlice {
		result := &resourceapi.ResourceSlice{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "slice-"},
			Spec: resourceapi.ResourceSliceSpec{
				Driver: "mla.example.com", NodeName: node, Pool: resourceapi.ResourcePool{Name: "pool", Generation: 1, ResourceSliceCount: 1},
			},
		}
		if node == nil {
			result.Spec.AllNodes = ptr.To(true)
		}
		return result
	}
	as := func(config *rest.Config) kubernetes.Interface {
		client, err := kubernetes.NewForConfig(config)
		require.NoError(t, err)
		return client
	}
	create := func(client kubernetes.Interface, slice *resourceapi.ResourceSlice) (*resourceapi.ResourceSlice, error) {
		return client.ResourceV1().ResourceSlices().Create(t.Context(), slice, metav1.CreateOptions{})
	}
	driver, nowhere := as(server.onNode("mine")), as(server.onNode(""))
	const others = "a driver on node mine may not write ResourceSlices of "

	// The API server takes a moment to enforce a new policy.
	require.Eventually(t, func() bool {
		_, err := create(driver, slice(ptr.To("other")))
		return err != nil
	}, 2*time.Minute, 100*time.Millisecond)
	_, err := create(driver, slice(ptr.To("other")))
	require.ErrorContains(t, err, others+"node other")
	_, err = create(driver, slice(nil))
	require.ErrorContains(t, err, others+"several nodes")
	_, err = create(nowhere, slice(ptr.To("mine")))
	require.ErrorContains(t, err, "the token does not say on which node its pod runs")

	mine, err := create(driver, slice(ptr.To("mine")))
	require.NoError(t, err)
	foreign, err := create(server.Client(), slice(ptr.To("other")))
	require.NoError(t, err, "the policy is about the driver only")
	for changed, message := range map[*resourceapi.ResourceSlice]string{mine: "", foreign: others + "node other"} {
		changed.Spec.Pool.Generation++
		_, err = driver.ResourceV1().ResourceSlices().Update(t.Context(), changed, metav1.UpdateOptions{})
		requireMessage(t, err, message)
		requireMessage(t, driver.ResourceV1().ResourceSlices().Delete(t.Context(), changed.Name, metav1.DeleteOptions{}), message)
	}
}

// requireMessage requires that err contains the message, or that err is nil if the message is empty.
func requireMessage(t *testing.T, err error, message string) {
	t.Helper()
	if message == "" {
		require.NoError(t, err)
		return
	}
	require.ErrorContains(t, err, message)
}

// TestDeviceClassesOfTheTopologyDriver checks that the examples and the overlays don't contain different objects of the same
// name.
func TestDeviceClassesOfTheTopologyDriver(t *testing.T) {
	examples := file(t, "examples", "deviceclasses.yaml")
	for overlay, name := range map[string]string{"topology-driver-ring": "mla.example.com", "topology-driver-mesh": "mesh.example.com"} {
		got := find(t, withoutLabels(rendered(t, "overlays/"+overlay), recommendedLabels...), "DeviceClass", name)
		require.Empty(t, cmp.Diff(find(t, examples, "DeviceClass", name).Object, got.Object))
	}
}

// TestOverlaysOfTheTopologyDriverGoTogether checks that a user can apply both overlays: objects that both contain are equal,
// and the pods have different selectors.
func TestOverlaysOfTheTopologyDriverGoTogether(t *testing.T) {
	rings, meshes := byName(rendered(t, "overlays/topology-driver-ring")), byName(rendered(t, "overlays/topology-driver-mesh"))
	own := map[bool]int{}
	for name, object := range rings {
		other, both := meshes[name]
		own[both]++
		if both {
			require.Empty(t, cmp.Diff(object, other))
		}
	}
	require.Equal(t, map[bool]int{true: 7, false: 2}, own, "DaemonSet and DeviceClass are of one overlay")
	selectors := map[string]bool{}
	for _, overlay := range []string{"ring", "mesh"} {
		set := find(t, rendered(t, "overlays/topology-driver-"+overlay), "DaemonSet", "celset-topology-driver-"+overlay)
		selector, err := set.MarshalJSON()
		require.NoError(t, err)
		require.NotContains(t, string(selector), map[string]string{"ring": "mesh", "mesh": "ring"}[overlay])
		selectors[string(selector)] = true
	}
	require.Len(t, selectors, 2)
}

// TestNamespaceAllowsThePods checks the pod security level of the driver's namespace. A cluster that enforces "restricted" by
// default would otherwise reject the driver's pods.
func TestNamespaceAllowsThePods(t *testing.T) {
	namespace := find(t, rendered(t, "topology-driver"), "Namespace", driverNamespace)
	require.Equal(t, "privileged", namespace.GetLabels()["pod-security.kubernetes.io/enforce"])
}
